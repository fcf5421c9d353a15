"""overlap = "drop": test sets lose the samples that are also elsewhere, and nothing else does."""

import warnings

import pytest
import torch

from dpn_plugin.data import Samples, drop_shared, fingerprint
from dpn_plugin.errors import UserError


def images(*numbers: int) -> Samples:
    """Return images that are equal if their numbers are; their labels are their positions."""
    pixels = torch.tensor(numbers, dtype=torch.uint8).reshape(-1, 1, 1, 1).expand(-1, 1, 4, 4)
    return Samples(pixels.contiguous(), torch.arange(len(numbers)), "some")


def numbers(samples: Samples) -> list[int]:
    return samples.inputs[:, 0, 0, 0].tolist()


def test_test_sets_lose_what_training_data_and_in_domain_tests_have():
    with pytest.warns(UserWarning, match="were dropped") as caught:
        left = drop_shared(
            images(1, 2, 3),
            images(10, 3, 11, 21),
            {"o": images(20, 21, 22), "p": images(30)},
            {"a": images(40, 2, 41, 20, 10, 30, 42), "b": images(50, 51)},
        )
    assert numbers(left.in_domain_test) == [10, 11]
    assert left.in_domain_test.labels.tolist() == [0, 2]
    assert numbers(left.ood["a"]) == [40, 41, 42]
    assert numbers(left.ood["b"]) == [50, 51]
    assert left.dropped == {"in_domain_test": 2, "a": 4}
    messages = [str(each.message) for each in caught]
    assert len(messages) == 2
    assert messages[0].startswith("2 of the 4 images of the in-domain data 'in_domain_test' are")
    assert messages[1].startswith("4 of the 7 images of the OOD test set 'a' are also in")
    for name in ("'in_domain'", "'o'", "'p'", "'in_domain_test'"):
        assert name in messages[1]


def test_what_is_left_has_its_own_fingerprint():
    with pytest.warns(UserWarning, match="dropped"):
        left = drop_shared(images(1), images(2), {"o": images(3)}, {"a": images(4, 3, 5)})
    clean = Samples(images(4, 5).inputs, torch.tensor([0, 2]), "clean")
    assert fingerprint(left.ood["a"]) == fingerprint(clean)


def test_sets_without_shared_samples_are_the_same_objects():
    test, ood = images(2), images(4)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        left = drop_shared(images(1), test, {}, {"a": ood})
    assert left.in_domain_test is test
    assert left.ood["a"] is ood
    assert left.dropped == {}


def test_a_set_of_which_nothing_is_left_is_refused():
    with pytest.raises(UserError, match=r"2 of the 2 .* 'a' are also in the outliers 'o': nothing"):
        drop_shared(images(1), images(2), {"o": images(3, 4)}, {"a": images(4, 3)})


def test_points_are_called_points():
    points = Samples(torch.arange(6.0).reshape(3, 2), torch.zeros(3, dtype=torch.int64), "points")
    other = Samples(torch.tensor([[0.0, 1.0], [9.0, 9.0]]), torch.zeros(2, dtype=torch.int64), "p")
    far = Samples(torch.tensor([[7.0, 7.0]]), torch.zeros(1, dtype=torch.int64), "far")
    with pytest.warns(UserWarning, match="1 of the 2 points"):
        assert len(drop_shared(points, far, {}, {"a": other}).ood["a"]) == 1
