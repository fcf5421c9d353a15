"""Conformal p-values and thresholds against counting, the beta distribution, and simulation."""

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.stats import beta

from dpn_plugin.errors import UserError
from dpn_plugin.metrics import (
    benjamini_hochberg,
    conformal_p_values,
    conformal_p_values_by_class,
    conformal_threshold,
    conformal_thresholds_by_class,
    required_calibration,
)

_FEW_VALUES = st.lists(st.integers(-3, 3), min_size=1, max_size=40)


def _counted(calibration, score):
    """The definition, one score at a time."""
    not_below = sum(1 for each in calibration if each >= score)
    return (1 + not_below) / (len(calibration) + 1)


@given(_FEW_VALUES, _FEW_VALUES)
@settings(max_examples=100, deadline=None)
def test_p_values_are_counted_ones_also_with_ties(calibration, scores):
    found = conformal_p_values(torch.tensor(calibration), torch.tensor(scores))
    assert found.dtype == torch.float64
    assert found.tolist() == [_counted(calibration, score) for score in scores]


@given(_FEW_VALUES, _FEW_VALUES, st.sampled_from([0.05, 0.07, 0.1, 0.29, 0.3, 0.5, 0.58, 0.9]))
@settings(max_examples=200, deadline=None)
def test_a_score_is_above_the_threshold_exactly_if_its_p_value_is_at_most_alpha(
    calibration, scores, alpha
):
    calibration = torch.tensor(calibration * 3).double()
    scores = torch.tensor(scores).double()
    if len(calibration) < required_calibration(alpha):
        return
    above = scores > conformal_threshold(calibration, alpha)
    assert torch.equal(above, conformal_p_values(calibration, scores) <= alpha)


@pytest.mark.parametrize("alpha", [k / 100 for k in range(1, 100)])
def test_rounding_does_not_separate_threshold_from_p_values(alpha):
    calibration = torch.arange(99.0)
    scores = torch.arange(-0.5, 99.5, 0.5)
    above = scores > conformal_threshold(calibration, alpha)
    assert torch.equal(above, conformal_p_values(calibration, scores) <= alpha)


def test_p_values_are_those_of_nonconform():
    # calculate_p_val of nonconform 2.0.0, times 102, for the same numbers
    i = torch.arange(101)
    calibration = ((i * 37) % 101 + 0.5).double() / 101
    scores = ((torch.arange(13) * 11) % 13).double() / 13 + 0.002
    theirs = [102, 16, 32, 47, 63, 78, 94, 9, 24, 40, 55, 71, 86]
    assert (102 * conformal_p_values(calibration, scores)).round().int().tolist() == theirs
    tied = conformal_p_values((8 * calibration).floor(), torch.arange(-1.0, 9.0))
    theirs = [102, 102, 89, 77, 64, 52, 39, 26, 14, 1]
    assert (102 * tied).tolist() == pytest.approx(theirs, rel=1e-12)


def test_infinite_scores_have_the_extreme_p_values_and_no_scores_none():
    calibration = torch.arange(9.0)
    ends = conformal_p_values(calibration, torch.tensor([torch.inf, -torch.inf]))
    assert ends.tolist() == [0.1, 1.0]
    assert conformal_p_values(calibration, torch.zeros(0)).shape == (0,)


@pytest.mark.parametrize("n", [59, 93, 500, 5000])
@pytest.mark.parametrize("alpha", [0.05, 0.1])
def test_the_confident_threshold_is_the_best_order_statistic_that_keeps_the_promise(n, alpha):
    threshold = conformal_threshold(torch.arange(float(n)), alpha, confidence=0.95)
    above_or_equal = n - round(threshold)  # its rank j; the share above it is Beta(j, n + 1 - j)
    assert beta.cdf(alpha, above_or_equal, n + 1 - above_or_equal) >= 0.95
    assert beta.cdf(alpha, above_or_equal + 1, n - above_or_equal) < 0.95


@pytest.mark.parametrize(
    ("alpha", "confidence", "needed"),
    # 1 - (1 - alpha)^n >= confidence: the tables of tolerance limits say 59 and 299
    [(0.05, None, 19), (0.1, None, 9), (0.01, None, 99), (0.05, 0.95, 59), (0.01, 0.95, 299)],
)
def test_too_few_samples_are_refused_with_the_number_needed(alpha, confidence, needed):
    assert required_calibration(alpha, confidence) == needed
    conformal_threshold(torch.arange(float(needed)), alpha, confidence)
    with pytest.raises(
        UserError, match=rf"at least {needed} calibration samples.*are {needed - 1}"
    ):
        conformal_threshold(torch.arange(float(needed - 1)), alpha, confidence)


@given(st.floats(1e-4, 0.999), st.none() | st.floats(0.01, 0.999))
@settings(max_examples=200, deadline=None)
def test_the_required_number_is_the_smallest_accepted_one(alpha, confidence):
    needed = required_calibration(alpha, confidence)
    conformal_threshold(torch.zeros(needed), alpha, confidence)
    if needed > 1:
        with pytest.raises(UserError, match="calibration"):
            conformal_threshold(torch.zeros(needed - 1), alpha, confidence)


def test_p_values_by_class_compare_within_the_predicted_class():
    generator = torch.Generator().manual_seed(0)
    calibration = torch.randn(200, generator=generator)
    known = torch.randint(3, (200,), generator=generator)
    scores = torch.randn(50, generator=generator)
    classes = torch.randint(4, (50,), generator=generator)  # class 3 was never calibrated
    found = conformal_p_values_by_class(calibration, known, scores, classes)
    expected = [
        _counted(calibration[known == label].tolist(), score)
        for score, label in zip(scores.tolist(), classes, strict=True)
    ]
    assert found.tolist() == expected
    assert (found[classes == 3] == 1).all()


def test_thresholds_by_class_are_those_of_each_class():
    calibration = torch.arange(100.0)
    classes = torch.arange(100) % 2
    found = conformal_thresholds_by_class(calibration, classes, 0.1, num_classes=2)
    assert found.tolist() == [
        conformal_threshold(calibration[classes == label], 0.1) for label in (0, 1)
    ]
    with pytest.raises(UserError, match=r"predicted class 2: .* at least 9 .* are 0"):
        conformal_thresholds_by_class(calibration, classes, 0.1, num_classes=3)


def test_benjamini_hochberg_is_the_step_up_procedure():
    p_values = np.random.default_rng(0).uniform(size=300) ** 3
    ordered = np.sort(p_values)
    passed = np.flatnonzero(ordered <= 0.1 * np.arange(1, 301) / 300)
    expected = p_values <= ordered[passed.max()]
    assert 0 < expected.sum() < 300
    assert benjamini_hochberg(torch.from_numpy(p_values), 0.1).tolist() == expected.tolist()
    assert benjamini_hochberg(torch.zeros(0), 0.1).shape == (0,)


def test_discoveries_of_conformal_p_values_keep_the_false_discovery_rate():
    generator = torch.Generator().manual_seed(0)
    false_shares = []
    for _ in range(300):
        calibration = torch.randn(400, generator=generator)
        inside = torch.randn(80, generator=generator)
        outside = torch.randn(20, generator=generator) + 3
        p_values = conformal_p_values(calibration, torch.cat([inside, outside]))
        found = benjamini_hochberg(p_values, 0.2)
        false_shares.append(float(found[:80].sum() / found.sum().clamp(min=1)))
    error = np.std(false_shares) / np.sqrt(300)
    # the expectation is 0.2 times the share of in-domain samples
    assert np.mean(false_shares) < 0.2 * 0.8 + 3 * error
    assert np.mean(false_shares) > 0.1


@pytest.mark.parametrize("level", [0, 1, -0.1, float("nan")])
def test_levels_outside_of_0_to_1_are_refused(level):
    with pytest.raises(UserError, match="alpha must lie between 0 and 1"):
        conformal_threshold(torch.arange(100.0), level)
    with pytest.raises(UserError, match="confidence must lie between 0 and 1"):
        conformal_threshold(torch.arange(100.0), 0.5, confidence=level)
    with pytest.raises(UserError, match="fdr must lie between 0 and 1"):
        benjamini_hochberg(torch.ones(3), level)


def test_broken_scores_are_refused():
    with pytest.raises(UserError, match="calibration: 1 of 2 scores"):
        conformal_p_values(torch.tensor([0.0, torch.nan]), torch.zeros(1))
    with pytest.raises(UserError, match="scores: 1 of 1 are NaN"):
        conformal_p_values(torch.zeros(2), torch.tensor([torch.nan]))
    with pytest.raises(UserError, match="p_values must lie between 0 and 1"):
        benjamini_hochberg(torch.tensor([0.5, 1.5]), 0.1)
    with pytest.raises(UserError, match="classes must be 1 integers"):
        conformal_p_values_by_class(
            torch.zeros(2), torch.zeros(2).int(), torch.zeros(1), torch.zeros(2).int()
        )
