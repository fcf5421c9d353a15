"""Calibration errors by hand and on simulated classifiers, and temperatures of simulated data."""

import numpy as np
import pytest
import torch
from scipy.optimize import minimize_scalar
from torch.nn.functional import cross_entropy, nll_loss

from dpn_plugin.errors import UserError
from dpn_plugin.metrics import (
    calibration_metrics,
    edl_confidence,
    equal_shares,
    fit_temperature,
    fit_translation,
    softmax_confidence,
)


def bools(*parts):
    return torch.cat([torch.full((count,), value) for value, count in parts])


def test_two_bins_computed_by_hand():
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


@pytest.mark.parametrize(("inside", "outside"), [(300, 100), (100, 300), (50, 50)])
def test_equal_shares_draw_without_replacement_and_ood_samples_are_wrong(inside, outside):
    confidence, out_confidence = torch.arange(inside), 1000 + torch.arange(outside)
    share, generator = min(inside, outside), torch.Generator().manual_seed(0)
    found, correct = equal_shares(confidence, confidence >= 0, out_confidence, generator)
    assert len(found.unique()) == len(found) == 2 * share
    assert torch.equal(correct, found < 1000)
    assert int(correct.sum()) == share


@pytest.mark.parametrize(("most", "share"), [(40, 40), (100, 100), (5000, 100)])
def test_a_limit_bounds_both_shares(most, share):
    confidence, out_confidence = torch.arange(300), 1000 + torch.arange(100)
    drawn = [
        equal_shares(
            confidence, confidence % 2 == 0, out_confidence, torch.Generator().manual_seed(4), most
        )
        for _ in range(2)
    ]
    (found, correct), (again, _) = drawn
    assert len(found.unique()) == len(found) == 2 * share
    assert int((found >= 1000).sum()) == share
    assert torch.equal(correct, (found < 1000) & (found % 2 == 0))
    assert torch.equal(found, again)


def test_a_limited_calibration_error_is_that_of_the_drawn_samples():
    # 200 in-domain samples at 1 and 200 OOD samples at 0.25, of 1000 and 700: four pure bins
    confidence, correct = torch.ones(1000), bools((True, 1000))
    found = calibration_metrics(confidence, correct, torch.full((700,), 0.25), most=200)
    assert found == pytest.approx({"rms_error": (0.25**2 / 2) ** 0.5, "ece": 0.125})
    mixed = torch.rand(700, generator=torch.Generator().manual_seed(0))
    limited = calibration_metrics(confidence, correct, mixed, most=200)
    assert limited == calibration_metrics(confidence, correct, mixed, most=200)
    assert limited != calibration_metrics(confidence, correct, mixed)


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


def sampled(probabilities):
    # not the seed of the logits: the same random numbers would correlate both
    generator = torch.Generator().manual_seed(1)
    return torch.multinomial(probabilities, 1, generator=generator).squeeze(1)


def logits_of(count, classes, scale):
    generator = torch.Generator().manual_seed(0)
    return scale * torch.randn(count, classes, generator=generator, dtype=torch.float64)


def edl_log_p(z, t):
    alpha = torch.relu(z + t) + 1
    return (alpha / alpha.sum(dim=1, keepdim=True)).log()


@pytest.mark.parametrize("temperature", [0.3, 1.0, 4.0])
def test_a_known_temperature_is_recovered(temperature):
    logits = logits_of(30_000, 10, 3 * temperature)
    labels = sampled(torch.softmax(logits / temperature, dim=1))
    assert fit_temperature(logits, labels) == pytest.approx(temperature, rel=0.03)


def test_no_other_temperature_is_more_likely():
    logits = logits_of(500, 7, 5)
    labels = sampled(torch.softmax(logits / 2, dim=1))
    loss = lambda t: cross_entropy(logits / t, labels).item()  # noqa: E731
    best = minimize_scalar(loss, bounds=(0.1, 30), method="bounded", options={"xatol": 1e-9})
    assert fit_temperature(logits.float(), labels) == pytest.approx(best.x, rel=1e-5)


def test_scaled_logits_give_a_scaled_temperature():
    logits = logits_of(400, 5, 2)
    labels = sampled(torch.softmax(logits, dim=1))
    assert fit_temperature(10 * logits, labels) == pytest.approx(
        10 * fit_temperature(logits, labels)
    )


def test_faultless_held_out_data_leaves_the_temperature_at_one(caplog):
    logits = logits_of(50, 4, 3)
    assert fit_temperature(logits, logits.argmax(dim=1)) == 1.0
    assert "no temperature" in caplog.text


def test_held_out_data_below_chance_leaves_the_temperature_at_one(caplog):
    logits = logits_of(50, 4, 3)
    assert fit_temperature(logits, logits.argmin(dim=1)) == 1.0
    assert "no temperature" in caplog.text


@pytest.mark.parametrize("translation", [-2.0, 0.0, 3.0])
def test_a_known_translation_is_recovered(translation):
    logits = logits_of(40_000, 5, 20)
    labels = sampled(edl_log_p(logits, translation).exp())
    assert fit_translation(logits, labels) == pytest.approx(translation, abs=0.5)


def test_no_other_translation_is_more_likely():
    logits = logits_of(300, 6, 8)
    labels = sampled(edl_log_p(logits, 2).exp())
    losses = [nll_loss(edl_log_p(logits, t), labels) for t in torch.linspace(-40, 200, 5001)]
    found = nll_loss(edl_log_p(logits, fit_translation(logits, labels)), labels)
    assert found <= min(losses) + 1e-12


@pytest.mark.parametrize("fit", [fit_temperature, fit_translation])
@pytest.mark.parametrize(
    ("logits", "labels", "message"),
    [
        (torch.zeros(3), torch.zeros(3), "Expected logits"),
        (torch.zeros(3, 2), torch.zeros(2), "Expected logits"),
        (torch.zeros(0, 2), torch.zeros(0), "Expected logits"),
        (torch.full((3, 2), float("nan")), torch.zeros(3), "NaN or infinite"),
        (torch.zeros(3, 2), -torch.ones(3), "classes from 0 to 1"),
        (torch.zeros(3, 2), torch.full((3,), 2), "classes from 0 to 1"),
    ],
)
def test_input_that_cannot_be_fitted_is_refused(fit, logits, labels, message):
    with pytest.raises(UserError, match=message):
        fit(logits, labels)
