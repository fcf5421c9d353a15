import pytest
import torch

from dpn_plugin.data import SourceSpec, check_no_overlap, hold_out, load
from dpn_plugin.data.guard import same_source, shared_images
from dpn_plugin.errors import UserError


def spec(source, **keys):
    return SourceSpec.parse({"source": source, **keys})


CIFAR = "torchvision:CIFAR100"
FILE = "npz:a.npz"


@pytest.mark.parametrize(
    ("a", "b"),
    [
        (spec(CIFAR), spec(CIFAR)),
        (spec(CIFAR, split="train"), spec(CIFAR, split="test")),
        (spec(CIFAR, limit=10), spec(CIFAR, limit=10)),
        (spec(CIFAR, classes=[1, 2]), spec(CIFAR)),
        (spec(CIFAR, classes=[1, 2]), spec(CIFAR, classes=[2, 3])),
        (spec(FILE, classes={"first": 5}), spec(FILE, classes={"from": 4})),
        (spec(FILE, classes={"from": 5}), spec(FILE, classes={"from": 9})),
        (spec(FILE, classes={"from": 5}), spec(FILE, classes=[9])),
        (spec(FILE, classes=["cat"]), spec(FILE, classes=[9])),
        (spec(FILE, classes=["cat"]), spec(FILE, classes={"from": 9})),
        (spec(FILE), spec("npz:./x/../a.npz")),
        (spec("torchvision:EMNIST/letters"), spec("torchvision:EMNIST/byclass")),
        (spec("synthetic:gaussians-ood"), spec("synthetic:gaussians-ood", split="train")),
    ],
)
def test_one_data_set_with_a_class_in_common_is_the_same_source(a, b):
    assert same_source(a, b)
    assert same_source(b, a)


@pytest.mark.parametrize(
    ("a", "b"),
    [
        (spec(CIFAR), spec("torchvision:CIFAR10")),
        (spec(FILE, classes={"first": 170}), spec(FILE, classes={"from": 170})),
        (spec(FILE, classes={"from": 3, "first": 2}), spec(FILE, classes={"from": 5, "first": 2})),
        (spec(FILE, classes=[1, 2]), spec(FILE, classes=[3])),
        (spec(FILE, classes=[1, 2]), spec(FILE, classes={"from": 3})),
        (spec(FILE, classes=["cat"]), spec(FILE, classes=["dog"])),
        (spec("sklearn:photograph/china"), spec("sklearn:photograph/flower")),
        (spec("synthetic:gaussians-ood"), spec("synthetic:gaussians-ood", split="test")),
    ],
)
def test_other_sets_and_disjoint_classes_are_not_the_same_source(a, b):
    assert not same_source(a, b)
    assert not same_source(b, a)


def test_a_shared_source_is_refused_before_anything_is_loaded():
    with pytest.raises(UserError, match=r"'outliers' .*'near\.cifar100' .*one data set"):
        check_no_overlap(
            [("outliers", spec(CIFAR, split="train"), None)],
            [("far.mnist", spec("torchvision:MNIST"), None), ("near.cifar100", spec(CIFAR), None)],
        )


def test_shared_images_are_refused_whatever_their_source(images):
    stay, held = hold_out(images, 0.5, 0)
    mixed = images.subset(torch.tensor([0, 1, 2, 3]))
    count = shared_images(stay, mixed)
    assert 0 < count + shared_images(held, mixed) == 4
    check_no_overlap([("outliers", spec("npz:a"), stay)], [("far.b", spec("npz:b"), held)])
    with pytest.raises(UserError, match=r"60 images of the OOD test set 'far\.b'.*'outliers'"):
        check_no_overlap([("outliers", spec("npz:a"), stay)], [("far.b", spec("npz:b"), images)])


def test_sets_that_are_not_loaded_yet_are_compared_by_source_alone(images):
    check_no_overlap([("outliers", spec("npz:a"), images)], [("far.b", spec("npz:b"), None)])


def test_one_changed_pixel_makes_another_image(images):
    other = images.subset(torch.arange(60))
    other.inputs[:, 0, 0, 0] ^= 1
    assert shared_images(images, images) == 60
    assert shared_images(images, other) == 0


def test_classes_of_one_file_may_be_shared_out(drawings):
    parts = [spec("npz:drawings.npz", classes=classes) for classes in ({"first": 2}, {"from": 2})]
    outliers, tests = [(str(p.classes), p, load(p, root=drawings.parent)) for p in parts]
    check_no_overlap([outliers], [tests])
