"""Samples that are set aside for calibration, and the check that nothing else uses them."""

import pytest
import torch

from dpn_plugin.data import SourceSpec, check_calibration, check_set_aside, set_aside
from dpn_plugin.data.samples import Samples
from dpn_plugin.errors import UserError


def _points(labels: torch.Tensor, offset: int = 0) -> Samples:
    inputs = torch.arange(offset, offset + 2.0 * len(labels)).reshape(-1, 2)
    return Samples(inputs, labels.long(), "points", ("a", "b"))


def test_the_parts_are_disjoint_complete_and_ordered():
    samples = _points(torch.arange(100) % 2)
    rest, aside = set_aside(samples, 0.1, seed=0)
    assert (len(rest), len(aside)) == (90, 10)
    both = torch.cat([rest.inputs, aside.inputs])
    assert torch.equal(both[both[:, 0].argsort()], samples.inputs)
    for part in (rest, aside):
        assert (part.inputs[1:, 0] > part.inputs[:-1, 0]).all()
    again = set_aside(samples, 0.1, seed=0)[1]
    assert torch.equal(aside.inputs, again.inputs)
    assert not torch.equal(aside.inputs, set_aside(samples, 0.1, seed=1)[1].inputs)


def test_a_class_is_drawn_as_often_as_chance_has_it():
    samples = _points(torch.arange(100) % 2)
    counts = [int(set_aside(samples, 0.2, seed)[1].labels.sum()) for seed in range(400)]
    # hypergeometric; a stratified split would always have 10
    assert torch.tensor(counts).double().mean() == pytest.approx(10, abs=0.5)
    assert torch.tensor(counts).double().std() == pytest.approx(
        (20 * 0.25 * 80 / 99) ** 0.5, rel=0.2
    )


@pytest.mark.parametrize("fraction", [0, 1, -0.5])
def test_a_share_out_of_range_is_refused(fraction):
    with pytest.raises(UserError, match="fraction must be between 0 and 1"):
        set_aside(_points(torch.zeros(10)), fraction, seed=0)


def test_no_class_loses_its_last_sample():
    labels = torch.arange(6) % 3
    for seed in range(20):
        rest, aside = set_aside(_points(labels), 0.9, seed)
        assert len(rest.labels.unique()) == 3
        assert len(rest) + len(aside) == 6
        assert len(aside) <= 3


def test_too_few_samples_are_refused():
    with pytest.raises(UserError, match="too few samples"):
        set_aside(_points(torch.tensor([0, 1])), 0.5, seed=0)


def _named(name: str, source: str, samples: Samples | None = None):
    return name, SourceSpec.parse(source), samples


def test_calibration_on_training_or_test_data_is_refused_before_anything_is_loaded():
    train = _named("in_domain", "torchvision:MNIST?split=train")
    test = _named("in_domain_test", "torchvision:MNIST?split=test")
    for other in (train, test):
        same = _named("calibration", f"{other[1].source}?split={other[1].split}&limit=500")
        with pytest.raises(UserError, match=f"'calibration' and '{other[0]}' are the same part"):
            check_calibration(same, [train, test])
    check_calibration(_named("calibration", "npz:mine.npz"), [train, test])


def test_shared_samples_are_a_warning_if_few_and_refused_if_many():
    labels = torch.zeros(200)
    train = _named("in_domain", "npz:a.npz", _points(labels))
    with pytest.raises(UserError, match="100 of the 200 points of 'calibration' are also in 'in_d"):
        check_calibration(_named("calibration", "npz:b.npz", _points(labels, 200)), [train])
    with pytest.warns(UserWarning, match="1 of the 200 points"):
        check_calibration(_named("calibration", "npz:b.npz", _points(labels, 398)), [train])


def test_duplicates_of_training_data_among_those_set_aside_are_a_warning():
    labels = torch.zeros(50)
    with pytest.warns(UserWarning, match="25 of the 50 points of points that are set aside"):
        check_set_aside(_points(labels), [_points(labels, 50)])
