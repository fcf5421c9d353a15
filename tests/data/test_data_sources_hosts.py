import pickle
import re
from hashlib import md5
from importlib.util import find_spec
from types import MappingProxyType

import numpy as np
import pytest
import torch
import torchvision.datasets
from PIL import Image
from pytorch_ood.dataset.img import GaussianNoise
from sklearn.datasets import load_digits, load_sample_image

from dpn_plugin.data import SourceSpec, fingerprint, load
from dpn_plugin.data.overlap import shared_images
from dpn_plugin.errors import UserError


def spec(source, **keys):
    return SourceSpec.parse({"source": source, **keys})


@pytest.mark.parametrize(("split", "train"), [(None, True), ("train", True), ("test", False)])
def test_a_torchvision_set_agrees_with_its_items(mnist_root, split, train):
    samples = load(spec("torchvision:MNIST", split=split), root=mnist_root, in_domain=True)
    host = torchvision.datasets.MNIST(mnist_root, train=train)
    assert len(samples) == len(host)
    for pixels, label, (image, target) in zip(samples.inputs, samples.labels, host, strict=True):
        assert np.array_equal(pixels[0], image)
        assert label == target


def test_the_variant_after_the_slash_is_the_required_argument_of_the_class(mnist_root):
    raw = mnist_root / "EMNIST" / "raw"
    raw.mkdir(parents=True)
    for part, ours in (("train", "train"), ("t10k", "test")):
        for kind in ("images-idx3-ubyte", "labels-idx1-ubyte"):
            content = (mnist_root / "MNIST" / "raw" / f"{part}-{kind}").read_bytes()
            (raw / f"emnist-letters-{ours}-{kind}").write_bytes(content)
    letters = load(spec("torchvision:EMNIST/letters", split="test"), root=mnist_root)
    assert fingerprint(letters) == fingerprint(
        load(spec("torchvision:MNIST", split="test"), root=mnist_root)
    )


def test_colour_arrays_come_channels_first(tmp_path, monkeypatch):
    rng = np.random.default_rng(0)
    folder = tmp_path / "cifar-10-batches-py"
    folder.mkdir()
    pixels = rng.integers(0, 256, (8, 3072), dtype=np.uint8)
    batch = pickle.dumps({"data": pixels, "labels": [0, 1, 2, 3, 0, 1, 2, 3]})
    meta = pickle.dumps({"label_names": ["plane", "car", "bird", "cat"]})
    (folder / "test_batch").write_bytes(batch)
    (folder / "batches.meta").write_bytes(meta)
    cifar = torchvision.datasets.CIFAR10
    monkeypatch.setattr(cifar, "train_list", [])
    monkeypatch.setattr(cifar, "test_list", [["test_batch", md5(batch).hexdigest()]])
    entry = {"filename": "batches.meta", "key": "label_names", "md5": md5(meta).hexdigest()}
    monkeypatch.setattr(cifar, "meta", MappingProxyType(entry))
    chosen = spec("torchvision:CIFAR10", split="test", classes=["cat", "car"])
    samples = load(chosen, root=tmp_path, in_domain=True)
    assert np.array_equal(samples.inputs, pixels.reshape(8, 3, 32, 32)[[1, 3, 5, 7]])
    assert samples.classes == ("car", "cat")


@pytest.fixture
def omniglot_root(tmp_path, monkeypatch):
    """Two alphabets of one character, two PNG files each."""
    folder = tmp_path / "omniglot-py"
    for alphabet in ("Greek", "Latin"):
        character = folder / "images_evaluation" / alphabet / "character01"
        character.mkdir(parents=True)
        for number in range(2):
            Image.new("1", (105, 105), 1).save(character / f"{number}.png")
    (folder / "images_evaluation.zip").write_bytes(b"")
    sums = torchvision.datasets.Omniglot.zips_md5
    monkeypatch.setitem(sums, "images_evaluation", md5(b"").hexdigest())
    return tmp_path


def test_sets_of_files_are_decoded_at_the_size_asked_for(omniglot_root):
    found = spec("torchvision:Omniglot", split="test")
    samples = load(found, root=omniglot_root, image_size=(28, 28), in_domain=True)
    assert samples.inputs.shape == (4, 1, 28, 28)
    assert samples.labels.tolist() == [0, 0, 1, 1]


def test_a_broken_image_of_a_set_is_named_by_its_position(omniglot_root):
    latin = omniglot_root / "omniglot-py" / "images_evaluation" / "Latin" / "character01"
    (latin / "1.png").write_bytes((latin / "1.png").read_bytes()[:60])
    with pytest.raises(UserError, match="torchvision:Omniglot: image 3 cannot be read"):
        load(spec("torchvision:Omniglot", split="test"), root=omniglot_root)


def test_a_missing_package_is_named(tmp_path):
    if find_spec("pycocotools"):
        pytest.skip("pycocotools is installed")
    with pytest.raises(UserError, match=r"CocoDetection/x needs a package .*pycocotools"):
        load("torchvision:CocoDetection/x", root=tmp_path)


@pytest.mark.parametrize(
    ("keys", "call"),
    [
        ({"source": "torchvision:CIFAR10", "split": "test"}, "CIFAR10.*train=False"),
        ({"source": "torchvision:SVHN", "split": "test"}, "SVHN.*split='test'"),
        ({"source": "torchvision:STL10", "split": "test"}, "STL10.*split='test'"),
        ({"source": "torchvision:EMNIST/letters"}, "EMNIST.*split='letters'"),
        ({"source": "torchvision:Omniglot", "split": "test"}, "Omniglot.*background=False"),
        (
            {"source": "torchvision:Places365", "split": "val", "options": {"small": True}},
            "Places365.*split='val', small=True",
        ),
        ({"source": "pytorch_ood:Textures"}, "Textures"),
        ({"source": "pytorch_ood:TinyImageNet", "split": "val"}, "TinyImageNet.*subset='val'"),
        ({"source": "pytorch_ood:MNISTC/fog", "split": "test"}, "MNISTC.*subset='fog', split="),
    ],
)
def test_the_message_for_a_missing_set_has_its_folder_and_the_download_command(
    tmp_path, keys, call
):
    with pytest.raises(UserError) as caught:
        load(SourceSpec.parse(keys), root=tmp_path)
    message = str(caught.value)
    assert keys["source"] in message
    assert str(tmp_path) in message
    command = message.partition("Get it with: ")[2].partition(' -c "')[2].partition('"')[0]
    compile(command, "command", "exec")
    assert "download=True" in command
    assert re.search(call, command)


def test_a_set_that_cannot_be_downloaded_gives_a_link(tmp_path):
    with pytest.raises(UserError, match=r"fetched by hand: see https://.*ImageNet"):
        load("torchvision:ImageNet", root=tmp_path)


def test_a_damaged_set_is_reported_as_such(mnist_root):
    path = mnist_root / "MNIST" / "raw" / "train-images-idx3-ubyte"
    path.write_bytes(path.read_bytes()[:1000])
    with pytest.raises(UserError, match="torchvision:MNIST"):
        load("torchvision:MNIST", root=mnist_root)


@pytest.mark.parametrize(
    ("keys", "message"),
    [
        ({"source": "torchvision:MNITS"}, "'MNITS'. Did you mean"),
        ({"source": "torchvision:ImageFolder"}, "Unknown torchvision data set"),
        ({"source": "torchvision:EMNIST"}, "needs a value for 'split': write .*EMNIST/SPLIT"),
        ({"source": "torchvision:MNIST/x"}, "MNIST has no variants"),
        ({"source": "torchvision:MNIST", "split": "val"}, "must be 'train' or 'test', not 'val'"),
        ({"source": "torchvision:SVHN", "split": "val"}, "Unknown value 'val'"),
        ({"source": "torchvision:MNIST", "options": {"dwnload": True}}, "mean 'download'"),
        ({"source": "torchvision:MNIST", "options": {"root": "x"}}, "MNIST has no option 'root'"),
        ({"source": "pytorch_ood:Texture"}, "Did you mean 'Textures'"),
        ({"source": "pytorch_ood:Textures", "split": "test"}, "has no splits"),
        ({"source": "pytorch_ood:GaussianNoise"}, "needs a value for 'length'"),
        (
            {"source": "pytorch_ood:GaussianNoise/many"},
            "length must be a number below 10.9, not 'many'",
        ),
        ({"source": "pytorch_ood:GaussianNoise/0"}, "length must be at least 1"),
        ({"source": "sklearn:photograph/china", "options": {"size": "8"}}, "number, not '8'"),
        ({"source": "pytorch_ood:MNISTC/fog"}, "needs a value for 'split': give it as split"),
        ({"source": "sklearn:digit"}, "Did you mean 'digits'"),
        ({"source": "sklearn:digits", "split": "val"}, "'calibration' or 'test', not 'val'"),
        ({"source": "sklearn:photograph/china", "split": "test"}, "has no splits"),
        ({"source": "sklearn:digits", "options": {"noise": 2}}, "between 0 and 1, not 2"),
        ({"source": "sklearn:digits", "options": {"noise": True}}, "between 0 and 1, not True"),
        ({"source": "sklearn:photograph/china", "options": {"size": 500}}, "between 1 and 427"),
        ({"source": "sklearn:photograph/china", "options": {"patches": 0}}, "patches must be"),
        ({"source": "synthetic:gaussian"}, "Did you mean 'gaussians"),
        ({"source": "synthetic:gaussians", "split": "val"}, "'train', 'test' or 'calibration'"),
    ],
)
def test_unknown_names_splits_and_options_are_reported(tmp_path, keys, message):
    with pytest.raises(UserError, match=message):
        load(SourceSpec.parse(keys), root=tmp_path)


def test_a_set_without_single_labels_is_refused(tmp_path):
    (tmp_path / "MovingMNIST").mkdir()
    films = np.zeros((20, 3, 64, 64), np.uint8)
    np.save(tmp_path / "MovingMNIST" / "mnist_test_seq.npy", films)
    with pytest.raises(UserError, match="MovingMNIST is not a set of images with one label each"):
        load("torchvision:MovingMNIST", root=tmp_path)


def test_noise_is_generated_by_the_host_in_the_shape_of_the_model(tmp_path):
    noise = load("pytorch_ood:GaussianNoise/5", root=tmp_path, image_size=(6, 7), channels=1)
    host = GaussianNoise(5, size=(6, 7, 1), seed=0)
    assert np.array_equal(noise.inputs[:, 0], np.stack([np.array(host[i][0]) for i in range(5)]))
    other = load(spec("pytorch_ood:GaussianNoise/5", options={"seed": 1}), root=tmp_path)
    assert other.inputs.shape == (5, 3, 32, 32)


def test_digits_keep_all_sixteen_grey_levels(tmp_path):
    digits = load("sklearn:digits", root=tmp_path, in_domain=True)
    host = load_digits()
    assert np.array_equal(np.rint(digits.inputs[:, 0].numpy() / 255 * 16), host.images)
    assert digits.inputs.max() == 255
    assert np.array_equal(digits.labels, host.target)
    assert len(digits.classes) == 10


def test_the_splits_of_the_digits_are_a_partition(tmp_path):
    whole = load("sklearn:digits?noise=0.1", root=tmp_path, in_domain=True)
    parts = [
        load(f"sklearn:digits?split={name}&noise=0.1", root=tmp_path, in_domain=True)
        for name in ("train", "calibration", "test")
    ]
    assert [len(part) for part in parts] == [898, 180, 719]

    def images(samples):
        pairs = zip(samples.inputs.numpy(), samples.labels.tolist(), strict=True)
        return sorted((image.tobytes(), label) for image, label in pairs)

    assert sorted(pair for part in parts for pair in images(part)) == images(whole)


def test_noise_has_its_standard_deviation_in_digits_and_in_grey_patches(tmp_path):
    for source in ("sklearn:digits?", "sklearn:photograph/china?patches=500&size=8&"):
        clean, noisy = (
            load(f"{source}noise={noise}", root=tmp_path, channels=1).inputs.double() / 255
            for noise in (0, 0.1)
        )
        inside = (clean > 0.4) & (clean < 0.6)  # the bytes end at 0 and 1
        added = (noisy - clean)[inside]
        assert added.mean().abs() < 4 * 0.1 / len(added) ** 0.5 + 1 / 255
        assert abs(added.std() - 0.1) < 0.005


def test_an_image_has_the_same_noise_in_every_selection(tmp_path):
    eights = load("sklearn:digits?classes=8&noise=0.3", root=tmp_path)
    whole = load("sklearn:digits?noise=0.3", root=tmp_path, in_domain=True)
    assert torch.equal(eights.inputs, whole.inputs[whole.labels == 8])


def test_patches_are_distinct_parts_of_the_photograph(tmp_path):
    chosen = spec("sklearn:photograph/flower", options={"patches": 20, "size": 16})
    patches = load(chosen, root=tmp_path)
    assert patches.inputs.shape == (20, 3, 16, 16)
    assert len({row.numpy().tobytes() for row in patches.inputs}) == 20
    photograph = np.ascontiguousarray(load_sample_image("flower.jpg"))
    windows = np.lib.stride_tricks.sliding_window_view(photograph, (16, 16), axis=(0, 1))
    first = patches.inputs[0].numpy()
    candidates = np.argwhere((windows[:, :, :, 0, 0] == first[:, 0, 0]).all(axis=2))
    assert any(np.array_equal(windows[row, column], first) for row, column in candidates)


def test_gaussians_have_the_papers_means_and_covariance(tmp_path):
    points = load("synthetic:gaussians", root=tmp_path, in_domain=True)
    assert torch.bincount(points.labels).tolist() == [200, 200, 200]
    for label, mean in enumerate([(-4, 0), (4, 0), (0, 5)]):
        members = points.inputs[points.labels == label]
        # four standard errors of a mean and of a variance of 200 points
        assert (members.mean(0) - torch.tensor(mean)).abs().max() < 4 * 2 / 200**0.5
        assert (torch.cov(members.T) - 4 * torch.eye(2)).abs().max() < 4 * 4 * (2 / 200) ** 0.5


def test_ood_points_have_the_minimum_distance_and_fill_the_square(tmp_path):
    points = load("synthetic:gaussians-ood", root=tmp_path).inputs
    means = torch.tensor([[-4.0, 0.0], [4.0, 0.0], [0.0, 5.0]])
    assert len(points) == 600
    assert torch.cdist(points, means).min() >= 6.5
    assert (points.min(0).values >= torch.tensor([-15.0, -13.0])).all()
    assert (points.max(0).values <= torch.tensor([15.0, 17.0])).all()
    assert (points.max(0).values - points.min(0).values).min() > 29


@pytest.mark.parametrize("name", ["gaussians", "gaussians-ood"])
def test_train_and_test_are_independent_draws(tmp_path, name):
    train = load(spec(f"synthetic:{name}", split="train"), root=tmp_path)
    again = load(f"synthetic:{name}", root=tmp_path)
    test = load(spec(f"synthetic:{name}", split="test"), root=tmp_path)
    assert fingerprint(train) == fingerprint(again)
    assert shared_images(train, test) == 0
