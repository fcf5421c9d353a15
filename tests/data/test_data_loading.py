import numpy as np
import pytest
import torch
from PIL import Image
from torchvision.datasets import MNIST

from dpn_plugin.data import DatasetCache, SourceSpec, fingerprint, load
from dpn_plugin.errors import UserError
from dpn_plugin.plugins import registry


def spec(source, **keys):
    return SourceSpec.parse({"source": source, **keys})


def test_in_domain_labels_are_renumbered_in_ascending_order(drawings):
    chosen = spec("npz:drawings.npz", classes=[3, 1])
    samples = load(chosen, root=drawings.parent, in_domain=True)
    with np.load(drawings) as arrays:
        kept = np.isin(arrays["labels"], [1, 3])
        assert np.array_equal(samples.inputs[:, 0], arrays["images"][kept])
        assert np.array_equal(samples.labels, arrays["labels"][kept] // 2)
    assert samples.classes == ("bee", "dog")


def test_labels_of_other_data_are_minus_one(drawings):
    samples = load("npz:drawings.npz", root=drawings.parent)
    assert samples.labels.tolist() == [-1] * 40


def test_names_and_numbers_and_ranges_choose_the_same_classes(drawings):
    ways = (["cat", "dog"], [2, 3], {"from": 2}, {"from": 2, "first": 2})
    found = {
        fingerprint(load(spec("npz:drawings.npz", classes=way), root=drawings.parent))
        for way in ways
    }
    assert len(found) == 1


@pytest.mark.parametrize(
    ("classes", "message"),
    [
        (["cta"], "'cta'. Did you mean 'cat'"),
        ([2, 9], "no class 9: its 4 classes go from 0 to 3, the nearest is 3"),
        ({"first": 5}, "no class 4"),
        ({"from": 4}, "no class 4"),
    ],
)
def test_a_class_that_does_not_exist_is_named_with_the_nearest(drawings, classes, message):
    with pytest.raises(UserError, match=message):
        load(spec("npz:drawings.npz", classes=classes), root=drawings.parent)


def test_classes_of_data_without_names_or_labels_cannot_be_chosen(tmp_path):
    pixels = np.zeros((2, 4, 4), np.uint8)
    np.savez(tmp_path / "numbers.npz", images=pixels, labels=np.array([0, 1]))
    np.savez(tmp_path / "none.npz", images=pixels)
    with pytest.raises(UserError, match="has no class names: give the classes as numbers"):
        load(spec("npz:numbers.npz", classes=["cat"]), root=tmp_path)
    with pytest.raises(UserError, match="has no labels"):
        load(spec("npz:none.npz", classes=[0]), root=tmp_path)


def test_limit_is_a_seeded_subset_in_the_order_of_the_source(drawings):
    whole = load("npz:drawings.npz", root=drawings.parent).inputs.flatten(1).tolist()

    def positions(seed):
        part = load(spec("npz:drawings.npz", limit=10), root=drawings.parent, seed=seed)
        return [whole.index(row) for row in part.inputs.flatten(1).tolist()]

    assert positions(0) == positions(0) == sorted(positions(0))
    assert positions(0) != positions(1)
    assert len(set(positions(0))) == 10


def test_a_limit_above_the_number_of_samples_keeps_all(drawings):
    assert len(load(spec("npz:drawings.npz", limit=1000), root=drawings.parent)) == 40


def test_unlabelled_data_cannot_be_in_domain(tmp_path):
    np.savez(tmp_path / "a.npz", images=np.zeros((3, 4, 4), np.uint8), labels=np.array([0, 1, -1]))
    with pytest.raises(UserError, match="cannot be in-domain data: 1 of its 3 samples"):
        load("npz:a.npz", root=tmp_path, in_domain=True)


def test_an_empty_set_is_refused(tmp_path):
    np.savez(tmp_path / "a.npz", images=np.zeros((0, 4, 4), np.uint8))
    with pytest.raises(UserError, match=r"npz:a\.npz has no samples"):
        load("npz:a.npz", root=tmp_path)


def test_relative_paths_start_at_the_base_and_then_at_the_root(drawings, tmp_path_factory):
    elsewhere = tmp_path_factory.mktemp("elsewhere")
    assert len(load("npz:drawings.npz", root=elsewhere, base=drawings.parent)) == 40
    assert len(load("npz:drawings.npz", root=drawings.parent, base=elsewhere)) == 40
    with pytest.raises(UserError, match=f"{elsewhere}/no.npz or {drawings.parent}/no.npz"):
        load("npz:no.npz", root=drawings.parent, base=elsewhere)


def test_resizing_a_batch_agrees_with_pillow(mnist_root):
    samples = load("torchvision:MNIST", root=mnist_root, image_size=(14, 14))
    for got, (image, _) in zip(samples.inputs, MNIST(mnist_root), strict=True):
        expected = np.array(image.resize((14, 14), Image.Resampling.BILINEAR)).astype(int)
        assert abs(got[0].numpy() - expected).max() <= 1


def test_images_of_another_shape_are_cropped_at_the_centre_not_distorted(tmp_path):
    stripes = np.zeros((1, 8, 16), np.uint8)
    stripes[:, :, 4:12] = 200
    np.savez(tmp_path / "a.npz", images=stripes)
    samples = load("npz:a.npz", root=tmp_path, image_size=(4, 4))
    assert samples.inputs.unique().tolist() == [200]


def test_grey_becomes_rgb_by_repetition_and_rgb_grey_by_luminance(tmp_path):
    colours = np.array([[255, 0, 0], [0, 255, 0], [0, 0, 255]], np.uint8)
    np.savez(tmp_path / "rgb.npz", images=np.broadcast_to(colours[:, None, None], (3, 2, 2, 3)))
    grey = load("npz:rgb.npz", root=tmp_path, channels=1)
    expected = [np.array(Image.fromarray(c[None, None]).convert("L")).item() for c in colours]
    assert abs(grey.inputs[:, 0, 0, 0].numpy() - np.array(expected)).max() <= 1
    np.savez(tmp_path / "grey.npz", images=grey.inputs[:, 0].numpy())
    rgb = load("npz:grey.npz", root=tmp_path, channels=3)
    assert torch.equal(rgb.inputs, grey.inputs.expand(-1, 3, -1, -1))


def test_channels_that_cannot_be_converted_are_refused(drawings):
    with pytest.raises(UserError, match="has 1 channels and cannot be brought to 4"):
        load("npz:drawings.npz", root=drawings.parent, channels=4)


def test_points_have_no_image_size(tmp_path):
    with pytest.raises(UserError, match="holds points"):
        load("synthetic:gaussians", root=tmp_path, image_size=(8, 8))


def test_an_unknown_scheme_or_option_gets_the_nearest_name(tmp_path):
    with pytest.raises(UserError, match="Did you mean 'torchvision'"):
        load("torchvison:MNIST", root=tmp_path)
    with pytest.raises(UserError, match=r"china has no option 'patch'\. Did you mean 'patches'"):
        load(spec("sklearn:photograph/china", options={"patch": 3}), root=tmp_path)
    with pytest.raises(UserError, match="sklearn:digits has no option 'root'"):
        load(spec("sklearn:digits", options={"root": "x"}), root=tmp_path)


@pytest.mark.parametrize(
    "scheme", ["torchvision", "pytorch_ood", "sklearn", "npz", "folder", "synthetic"]
)
def test_every_documented_scheme_is_registered(scheme):
    assert callable(registry.load("datasets", scheme))


def test_the_cache_loads_a_data_set_once_for_each_use(drawings):
    cache, chosen = DatasetCache(drawings.parent), spec("npz:drawings.npz")
    assert cache.load(chosen) is cache.load(spec("npz:drawings.npz"))
    assert cache.load(chosen, in_domain=True).labels.unique().tolist() == [0, 1, 2, 3]
    assert cache.load(chosen).labels.unique().tolist() == [-1]


def test_the_cache_loads_data_in_the_shape_of_other_data(drawings, images):
    cache, chosen = DatasetCache(drawings.parent), spec("npz:drawings.npz")
    ood = cache.load_like(images, chosen)
    assert ood.inputs.shape == (40, 3, 8, 8)
    assert ood is cache.load(chosen, image_size=(8, 8), channels=3)
    assert ood.labels.unique().tolist() == [-1]
    in_domain = cache.load_like(images, chosen, in_domain=True)
    assert in_domain.classes == ("ant", "bee", "cat", "dog")
    assert torch.equal(in_domain.inputs, ood.inputs)


def test_points_have_no_shape_to_follow(tmp_path):
    cache = DatasetCache(tmp_path)
    points = cache.load(spec("synthetic:gaussians"), in_domain=True)
    other = cache.load_like(points, spec("synthetic:gaussians", split="test"), in_domain=True)
    assert other.labels.unique().tolist() == [0, 1, 2]
