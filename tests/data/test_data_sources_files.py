import io
import zipfile

import numpy as np
import pytest
import torch
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from PIL import Image

from dpn_plugin.data import SourceSpec, load, load_image_files
from dpn_plugin.errors import UserError

GOOD = {"images": np.zeros((3, 4, 5), np.uint8), "labels": np.array([0, 1, 2])}


def outcome(source, **keys):
    """Return the loaded samples, or the message of the error."""
    try:
        return load(source, **keys)
    except UserError as error:
        return str(error)


def test_colour_images_come_channels_first(tmp_path):
    images = np.random.default_rng(0).integers(0, 256, (3, 4, 5, 3), dtype=np.uint8)
    np.savez(tmp_path / "a.npz", images=images, labels=np.arange(3, dtype=np.uint8))
    samples = load("npz:a.npz", root=tmp_path, in_domain=True)
    assert np.array_equal(samples.inputs, images.transpose(0, 3, 1, 2))
    assert samples.classes == ("0", "1", "2")


@pytest.mark.parametrize(
    ("arrays", "message"),
    [
        ({"labels": GOOD["labels"]}, r"no array 'images', only \['labels'\]"),
        ({**GOOD, "images": np.zeros((3, 4, 5))}, "images must be uint8 .* not float64"),
        ({**GOOD, "images": np.zeros((3, 4), np.uint8)}, r"of shape \(3, 4\)"),
        ({**GOOD, "images": np.zeros((3, 4, 5, 2), np.uint8)}, r"of shape \(3, 4, 5, 2\)"),
        ({**GOOD, "labels": np.zeros(3)}, "labels must be integers .* not float64"),
        ({**GOOD, "labels": np.arange(4)}, r"of shape \(3,\), one for each image, not"),
        ({**GOOD, "classes": np.array(["a", "b"])}, "one name for each label up to 2"),
        ({**GOOD, "classes": np.arange(3)}, "classes must be text"),
        ({**GOOD, "labels": np.array([{}, 1, 2])}, "labels.npy holds Python objects"),
    ],
)
def test_arrays_of_another_type_or_shape_are_refused(tmp_path, arrays, message):
    np.savez(tmp_path / "a.npz", **arrays)
    with pytest.raises(UserError, match=message):
        load("npz:a.npz", root=tmp_path)


def test_a_file_that_declares_more_than_the_memory_is_refused_before_it_is_read(tmp_path):
    header = io.BytesIO()
    np.lib.format.write_array_header_1_0(
        header, {"descr": "|u1", "fortran_order": False, "shape": (10**9, 10**6, 10**3)}
    )
    with zipfile.ZipFile(tmp_path / "bomb.npz", "w") as archive:
        archive.writestr("images.npy", header.getvalue())
    with pytest.raises(UserError, match=r"images.npy declares .* GiB, more than 200 times"):
        load("npz:bomb.npz", root=tmp_path)


@settings(max_examples=60, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(position=st.integers(0, 10**6), value=st.integers(0, 255), cut=st.booleans())
def test_a_damaged_file_is_refused_or_read_but_never_crashes(drawings, position, value, cut):
    content = bytearray(drawings.read_bytes())
    position %= len(content)
    content[position] = value
    damaged = drawings.with_name("damaged.npz")
    damaged.write_bytes(content[:position] if cut else content)
    found = outcome("npz:damaged.npz", root=drawings.parent)
    assert "damaged.npz" in found if isinstance(found, str) else len(found) == 40


def test_a_split_of_a_file_is_refused(drawings):
    with pytest.raises(UserError, match=r"npz:drawings\.npz has no splits"):
        load(SourceSpec(source="npz:drawings.npz", split="test"), root=drawings.parent)


def test_subfolders_are_classes_in_the_order_of_their_names(photos):
    samples = load("folder:photos", root=photos.parent, image_size=(8, 8), in_domain=True)
    assert samples.classes == ("cats", "dogs")
    assert samples.labels.tolist() == [0, 0, 0, 1, 1, 1]
    assert samples.inputs.shape == (6, 3, 8, 8)


def test_a_split_is_a_folder_inside(photos):
    dogs = SourceSpec(source="folder:photos", split="dogs")
    assert len(load(dogs, root=photos.parent, image_size=(8, 8))) == 3


def test_a_flat_folder_has_no_labels_and_ignores_other_files(photos):
    (photos / "cats" / "readme.txt").write_text("three cats")
    assert len(load("folder:cats", root=photos, image_size=(8, 8))) == 3
    layout = r"has no class subfolders\..*: cats/cat/1\.png, cats/dog/1\.png"
    with pytest.raises(UserError, match=f"cannot be in-domain data: .*{layout}"):
        load("folder:cats", root=photos, image_size=(8, 8), in_domain=True)
    with pytest.raises(UserError, match=f"no classes to choose from: .*{layout}"):
        load("folder:cats?classes=tabby", root=photos, image_size=(8, 8))


def test_hidden_files_and_folders_are_ignored(photos):
    for folder in (photos / ".ipynb_checkpoints", photos / "cats" / ".ipynb_checkpoints"):
        folder.mkdir()
        (folder / "0-checkpoint.png").write_bytes((photos / "cats" / "0.png").read_bytes())
    (photos / "dogs" / "._0.png").write_bytes(b"resource fork")
    samples = load("folder:photos", root=photos.parent, image_size=(8, 8), in_domain=True)
    assert (samples.classes, len(samples)) == (("cats", "dogs"), 6)
    assert len(load("folder:dogs", root=photos, image_size=(8, 8))) == 3
    _, names = load_image_files([photos], (8, 8), 3)
    assert len(names) == 6


def test_a_class_without_images_is_named(photos):
    (photos / "birds").mkdir()
    with pytest.raises(UserError, match="'birds' holds no images"):
        load("folder:photos", root=photos.parent, image_size=(8, 8))


def test_sixteen_bit_palette_and_transparent_images_become_rgb(tmp_path):
    grey = Image.fromarray(np.full((4, 4), 7, np.uint8))
    for number, mode in enumerate(["P", "RGBA", "LA", "1", "CMYK"]):
        grey.convert(mode).save(tmp_path / f"{number}.{'tif' if mode == 'CMYK' else 'png'}")
    samples = load(f"folder:{tmp_path}", root="/", channels=3)
    assert samples.inputs.shape == (5, 3, 4, 4)
    assert samples.inputs[0].unique().tolist() == [7]


def test_images_of_different_sizes_need_a_size(photos):
    with pytest.raises(UserError, match=r"30x20 and 30x21.*--set image_size=32 .*input_size = "):
        load("folder:photos", root=photos.parent)


def test_only_the_images_that_are_kept_are_decoded(photos):
    (photos / "cats" / "1.png").write_bytes(b"not a picture")
    dogs = SourceSpec(source="folder:photos", classes=("dogs",))
    assert len(load(dogs, root=photos.parent, image_size=(8, 8))) == 3
    with pytest.raises(UserError, match=r"cats/1\.png is not a readable image"):
        load("folder:photos", root=photos.parent, image_size=(8, 8))


@settings(max_examples=40, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(position=st.integers(0, 10**6), value=st.integers(0, 255), cut=st.booleans())
def test_a_damaged_image_is_refused_or_read_but_never_crashes(photos, position, value, cut):
    content = bytearray((photos / "cats" / "0.png").read_bytes())
    position %= len(content)
    content[position] = value
    (photos / "one").mkdir(exist_ok=True)
    (photos / "one" / "a.png").write_bytes(content[:position] if cut else content)
    found = outcome("folder:one", root=photos, image_size=(4, 4))
    assert "a.png" in found if isinstance(found, str) else len(found) == 1


@pytest.mark.parametrize("content", ["nothing", "text", "empty class"])
def test_a_folder_without_images_is_refused(tmp_path, content):
    if content == "text":
        (tmp_path / "a.txt").write_text("a")
    elif content == "empty class":
        (tmp_path / "cats").mkdir()
    with pytest.raises(UserError, match=f"folder:{tmp_path}"):
        load(f"folder:{tmp_path}", root="/")


def test_decoding_one_by_one_agrees_with_resizing_a_batch(tmp_path):
    pixels = np.random.default_rng(4).integers(0, 256, (5, 24, 40, 3), dtype=np.uint8)
    np.savez(tmp_path / "a.npz", images=pixels)
    (tmp_path / "files").mkdir()
    for number, image in enumerate(pixels):
        Image.fromarray(image).save(tmp_path / "files" / f"{number}.png")
    batch = load("npz:a.npz", root=tmp_path, image_size=(12, 12))
    single = load("folder:files", root=tmp_path, image_size=(12, 12))
    assert (batch.inputs.int() - single.inputs.int()).abs().max() <= 1
    assert torch.equal(batch.labels, single.labels)
