import warnings

import pytest
import torch

from dpn_plugin.data import (
    Samples,
    SourceSpec,
    check_in_domain_test,
    check_no_overlap,
    hold_out,
    load,
)
from dpn_plugin.data.overlap import same_source, shared_images
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
    remaining, held = hold_out(images, 0.5, 0)
    mixed = images.subset(torch.tensor([0, 1, 2, 3]))
    count = shared_images(remaining, mixed)
    assert 0 < count + shared_images(held, mixed) == 4
    check_no_overlap([("outliers", spec("npz:a"), remaining)], [("far.b", spec("npz:b"), held)])
    words = r"60 images of the OOD test set 'far\.b'.*'outliers'.*overlap = \"drop\" in the suite"
    with pytest.raises(UserError, match=words):
        check_no_overlap(
            [("outliers", spec("npz:a"), remaining)], [("far.b", spec("npz:b"), images)]
        )


def test_sets_that_are_not_loaded_yet_are_compared_by_source_alone(images):
    check_no_overlap([("outliers", spec("npz:a"), images)], [("far.b", spec("npz:b"), None)])


def test_images_that_differ_in_one_pixel_are_not_shared(images):
    other = images.subset(torch.arange(60))
    other.inputs[:, 0, 0, 0] ^= 1
    assert shared_images(images, images) == 60
    assert shared_images(images, other) == 0


def test_disjoint_classes_of_one_file_are_accepted(drawings):
    parts = [spec("npz:drawings.npz", classes=classes) for classes in ({"first": 2}, {"from": 2})]
    outliers, tests = [(str(p.classes), p, load(p, root=drawings.parent)) for p in parts]
    check_no_overlap([outliers], [tests])


@pytest.mark.parametrize("name", ["in_domain", "in_domain_test"])
@pytest.mark.parametrize(("role", "title"), [(0, "outliers 'x'"), (1, "OOD test set 'x'")])
def test_ood_data_of_the_in_domain_source_is_refused(name, role, title):
    ood = [[], []]
    ood[role] = [("x", spec(CIFAR, split="test"), None)]
    with pytest.raises(UserError, match=rf"The in-domain data '{name}' .* the {title} .*one data"):
        check_no_overlap(*ood, [(name, spec(CIFAR, split="train"), None)])


def test_other_classes_of_the_in_domain_source_are_accepted():
    in_domain = [("in_domain", spec(FILE, classes={"first": 5}), None)]
    check_no_overlap([("x", spec(FILE, classes=[5]), None)], [], in_domain)
    check_no_overlap([], [("x", spec(FILE, classes={"from": 6}), None)], in_domain)


def test_another_draw_from_the_in_domain_distribution_is_not_ood():
    in_domain = [("in_domain", spec("synthetic:gaussians"), None)]
    with pytest.raises(UserError, match="one data set"):
        check_no_overlap([], [("x", spec("synthetic:gaussians", split="test"), None)], in_domain)


@pytest.mark.parametrize("role", [0, 1])
@pytest.mark.parametrize("name", ["in_domain", "in_domain_test"])
def test_ood_data_with_in_domain_images_is_refused(images, name, role):
    ood = [[], []]
    ood[role] = [("x", spec("npz:b"), images.subset(torch.arange(10)))]
    in_domain = [(name, spec("npz:a"), images.subset(torch.arange(9, 60)))]
    with pytest.raises(UserError, match=rf"1 of the 10 .* of the .*'x' are also .*'{name}'") as e:
        check_no_overlap(*ood, in_domain)
    # training data is never changed, so that outliers cannot lose images
    is_test = name == "in_domain_test" or role == 1
    assert ("drop" in str(e.value)) is is_test


def test_held_out_samples_are_compared_with_the_tests(images):
    """They are a part of the in-domain data and of the outliers, whatever the seed."""
    for seed in range(3):
        _, held_out = hold_out(images, 0.1, seed)
        tests = [("far.b", spec("npz:b"), held_out)]
        for arguments in (([("o", spec("npz:a"), images)], tests), ([], tests)):
            with pytest.raises(UserError, match=f"{len(held_out)} of the {len(held_out)} images"):
                check_no_overlap(*arguments, [("in_domain", spec("npz:c"), images)])


def test_the_splits_of_a_source_are_in_domain_training_and_test_data():
    check_in_domain_test(spec(CIFAR, split="train"), spec(CIFAR, split="test"))
    check_in_domain_test(spec("npz:train.npz"), spec("npz:test.npz"))


@pytest.mark.parametrize(
    ("train", "test"),
    [
        (spec(CIFAR, split="test"), spec(CIFAR, split="test", limit=10)),
        (spec(FILE), spec("npz:./a.npz", classes=[1, 2])),
    ],
)
def test_a_test_on_the_training_data_is_refused_before_anything_is_loaded(train, test):
    with pytest.raises(UserError, match=r"same part of .* or leave it out: then a fifth"):
        check_in_domain_test(train, test)


def many_images(count: int, seed: int) -> Samples:
    generator = torch.Generator().manual_seed(seed)
    pixels = torch.randint(0, 256, (count, 1, 4, 4), generator=generator, dtype=torch.uint8)
    return Samples(pixels, torch.zeros(count, dtype=torch.int64), "many")


def test_a_few_shared_test_images_are_a_warning_and_many_are_refused():
    train, test = many_images(300, 1), many_images(200, 2)
    sources = spec("npz:train.npz"), spec("npz:test.npz")
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        check_in_domain_test(*sources, (train, test))
    test.inputs[:2] = train.inputs[:2]
    words = (
        r"2 of the 200 images \(1.0%\) of 'in_domain_test' .*npz:test.npz.* 'in_domain' .*Remove"
    )
    with pytest.warns(UserWarning, match=words):
        check_in_domain_test(*sources, (train, test))
    test.inputs[2] = train.inputs[2]
    with pytest.raises(UserError, match=r"3 of the 200 images \(1.5%\).*Remove them from one"):
        check_in_domain_test(*sources, (train, test))
    with pytest.raises(UserError, match=r"3 of the .*kept back from .*Remove its duplicates"):
        check_in_domain_test(sources[0], None, (train, test))
