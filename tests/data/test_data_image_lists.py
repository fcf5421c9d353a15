"""Lists of files are checked before anything is read; images of every kind are converted."""

import os
import time

import numpy as np
import pytest
import torch
from PIL import Image

from dpn_plugin.data import StorageOptions, StreamedImages, load, storage
from dpn_plugin.errors import UserError

PIXELS = np.random.default_rng(0).integers(0, 256, (6, 8, 8, 3), dtype=np.uint8)


@pytest.fixture
def lists(tmp_path):
    """OpenOOD's layout with four images and a function that writes their list."""
    images = tmp_path / "images_classic" / "tin"
    images.mkdir(parents=True)
    (tmp_path / "benchmark_imglist" / "cifar10").mkdir(parents=True)
    for number, pixels in enumerate(PIXELS[:4]):
        Image.fromarray(pixels).save(images / f"{number}.png")
    path = tmp_path / "benchmark_imglist" / "cifar10" / "test_tin.txt"
    path.write_text("".join(f"tin/{number}.png {number % 2}\n" for number in range(4)))
    return path


def listed(lists, more=""):
    lists.write_text(lists.read_text() + more)
    return load("openood:cifar10/test_tin", root=lists.parents[2], in_domain=True)


def test_a_list_gives_its_images_and_labels(lists):
    found = listed(lists)
    assert np.array_equal(found.all_rows(), PIXELS[:4].transpose(0, 3, 1, 2))
    assert found.labels.tolist() == [0, 1, 0, 1]


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ("tin/9.png 1\n", r"tin/9.png is not a readable image: there is no such file"),
        ("../secret.png 1\n", r"test_tin.txt names .*secret.png, which is not in"),
        ("/etc/passwd 1\n", r"test_tin.txt names /etc/passwd, which is not in"),
        ("tin/../../secret.png 1\n", r"names .*secret.png, which is not in"),
        ("tin/0.png one\n", r"test_tin.txt is not a list of images"),
        (f"tin/0.png {10**30}\n", r"has a label that is too large"),
    ],
)
def test_a_wrong_line_is_named(lists, line, message):
    Image.fromarray(PIXELS[5]).save(lists.parents[2] / "secret.png")
    with pytest.raises(UserError, match=message):
        listed(lists, line)


def test_a_missing_file_of_a_list_can_be_left_out(lists):
    lists.write_text(lists.read_text() + "tin/9.png 1\n")
    with pytest.warns(UserWarning, match="1 of the 5 files"):
        found = load("openood:cifar10/test_tin?skip_damaged=true", root=lists.parents[2])
    assert (len(found), found.damaged) == (4, 1)


@pytest.mark.parametrize("channels", [1, 3])
def test_sixteen_bits_keep_their_upper_eight(tmp_path, channels):
    (tmp_path / "photos").mkdir()
    deep = PIXELS[0, ..., 0].astype(np.uint16) * 256 + 77
    Image.fromarray(deep).save(tmp_path / "photos" / "deep.png")
    found = load("folder:photos", root=tmp_path, image_size=(8, 8), channels=channels)
    assert np.array_equal(found.all_rows()[0, 0], PIXELS[0, ..., 0])


def test_cmyk_is_converted_as_pillow_does(tmp_path):
    (tmp_path / "photos").mkdir()
    image = Image.fromarray(PIXELS[0]).convert("CMYK")
    image.save(tmp_path / "photos" / "print.jpg")
    with Image.open(tmp_path / "photos" / "print.jpg") as saved:
        expected = np.array(saved.convert("RGB"))
    found = load("folder:photos", root=tmp_path)
    assert np.array_equal(found.all_rows()[0], expected.transpose(2, 0, 1))


def test_files_of_a_torchvision_set_are_known_again(tmp_path, monkeypatch):
    monkeypatch.setattr(storage, "SMALL", 0)
    for number, pixels in enumerate(PIXELS):
        folder = tmp_path / "eurosat" / "2750" / ("Forest" if number % 2 else "River")
        folder.mkdir(parents=True, exist_ok=True)
        path = folder / f"{number}.png"
        Image.fromarray(pixels).save(path)
        os.utime(path, (time.time() - 60,) * 2)
    options = StorageOptions(tmp_path / "cache", memory=0, workers=0)
    arguments = {"root": tmp_path, "image_size": (8, 8), "channels": 3, "in_domain": True}
    first = load("torchvision:EuroSAT", **arguments, storage=options)
    assert isinstance(first.inputs, StreamedImages)
    assert torch.equal(first.all_rows(), load("torchvision:EuroSAT", **arguments).all_rows())

    def refuse(self, position):
        raise AssertionError("an image was read")

    monkeypatch.setattr("dpn_plugin.data.lazy_images.ImageDecoder.decode", refuse)
    again = load("torchvision:EuroSAT", **arguments, storage=options)
    assert np.array_equal(again.inputs.hashes, first.inputs.hashes)
