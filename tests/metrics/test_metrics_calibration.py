"""Calibration errors by hand and on simulated classifiers."""

import numpy as np
import pytest
import torch

from dpn_plugin.errors import UserError
from dpn_plugin.metrics import calibration_metrics, edl_confidence, softmax_confidence


def bools(*parts):
    return torch.cat([torch.full((count,), value) for value, count in parts])


def test_two_bins_worked_by_hand():
    confidence = torch.cat([torch.full((100,), 0.6), torch.full((100,), 0.9)])
    correct = bools((True, 50), (False, 50), (True, 70), (False, 30))
    # gaps 0.1 and 0.2: root of (0.01 + 0.04) / 2, mean of 0.1 and 0.2
    found = calibration_metrics(confidence, correct)
    assert found == pytest.approx({"rms_error": 0.025**0.5, "ece": 0.15})


def test_ood_samples_count_as_wrong_and_make_up_half():
    confidence, correct = torch.full((300,), 1.0), bools((True, 300))
    # 100 of the 300 right ones meet 100 wrong ones at 0.25: two pure bins
    found = calibration_metrics(confidence, correct, torch.full((100,), 0.25))
    assert found == pytest.approx({"rms_error": (0.25**2 / 2) ** 0.5, "ece": 0.125})


def test_more_ood_than_in_domain_samples_are_drawn_down_too():
    found = calibration_metrics(torch.ones(100), bools((True, 100)), torch.full((900,), 0.25))
    assert found["ece"] == pytest.approx(0.125)


def test_equal_confidences_mix_both_kinds():
    found = calibration_metrics(
        torch.full((5000,), 0.5), bools((True, 5000)), torch.full((5000,), 0.5)
    )
    # half are right at confidence 0.5; unmixed bins would be 0.5 off each
    assert found["ece"] < 0.06


def test_a_calibrated_classifier_errs_no_more_than_chance_allows():
    random = np.random.default_rng(0)
    confidence = random.uniform(0.1, 1, 20_000)
    correct = torch.tensor(random.uniform(size=20_000) < confidence)
    # bins of 100 alone scatter by the square root of p(1-p)/100
    expected = np.sqrt(np.mean(confidence * (1 - confidence)) / 100)
    found = calibration_metrics(torch.tensor(confidence), correct)
    assert found["rms_error"] == pytest.approx(expected, rel=0.2)


def test_an_overconfident_classifier_errs_by_its_overconfidence():
    correct = torch.tensor(np.random.default_rng(0).uniform(size=20_000) < 0.6)
    found = calibration_metrics(torch.full((20_000,), 0.9), correct)
    assert found["ece"] == pytest.approx(0.3, abs=0.01)


def test_the_draw_depends_on_the_seed_alone():
    random = torch.Generator().manual_seed(3)
    confidence, out = torch.rand(700, generator=random), torch.rand(300, generator=random)
    correct = torch.rand(700, generator=random) < confidence
    first = calibration_metrics(confidence, correct, out, seed=1)
    assert first == calibration_metrics(confidence, correct, out, seed=1)
    assert first != calibration_metrics(confidence, correct, out, seed=2)


def test_softmax_confidence_falls_with_the_temperature():
    logits = torch.tensor([[2.0, 0.0, 0.0]])
    assert softmax_confidence(logits).item() == pytest.approx(np.exp(2) / (np.exp(2) + 2))
    assert softmax_confidence(logits, 1e9).item() == pytest.approx(1 / 3)


def test_edl_confidence_adds_the_translation_before_the_relu():
    logits = torch.tensor([[3.0, -1.0]])
    assert edl_confidence(logits).item() == pytest.approx(4 / 5)
    assert edl_confidence(logits, 2.0).item() == pytest.approx(6 / 8)
    assert edl_confidence(logits, -5.0).item() == pytest.approx(1 / 2)


def test_a_confidence_above_one_is_refused():
    with pytest.raises(UserError, match="confidence must lie between 0 and 1"):
        calibration_metrics(torch.tensor([0.5, 2.0]), bools((True, 2)))


def test_shapes_that_differ_are_refused():
    with pytest.raises(UserError, match="correct has shape"):
        calibration_metrics(torch.ones(3), bools((True, 2)))
