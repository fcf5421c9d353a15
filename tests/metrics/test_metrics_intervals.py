"""Intervals of the AUROC against published values, the definition, and a bootstrap."""

import math

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from sklearn.metrics import roc_auc_score

from dpn_plugin.errors import UserError
from dpn_plugin.metrics import auroc_interval, auroc_interval_from_counts

Z = 1.959963984540054

#: Hanley and McNeil 1982, Table I: ratings 1 to 5 of 58 normal and of 51 abnormal images
NORMAL = torch.arange(1, 6).repeat_interleave(torch.tensor([33, 6, 6, 11, 2]))
ABNORMAL = torch.arange(1, 6).repeat_interleave(torch.tensor([3, 2, 2, 11, 33]))


def test_ratings_of_hanley_and_mcneil_have_the_interval_that_stata_publishes() -> None:
    # Stata's manual, "roctab disease rating": DeLong's standard error is 0.0307
    found = auroc_interval(NORMAL, ABNORMAL)
    assert found.auroc == pytest.approx(0.8932, abs=5e-5)
    assert (found.high - found.low) / (2 * Z) == pytest.approx(0.0307, abs=5e-5)
    assert (found.low, found.high) == pytest.approx((0.83295, 0.95339), abs=5e-6)


def test_the_ratings_have_about_the_interval_of_their_counts() -> None:
    # Hanley and McNeil publish a standard error of 0.032 for them
    found = auroc_interval_from_counts(auroc_interval(NORMAL, ABNORMAL).auroc, 58, 51)
    assert round((found.high - found.low) / (2 * Z), 3) == 0.032


def test_the_variance_from_counts_is_exact_for_exponential_scores() -> None:
    random = np.random.default_rng(3)
    in_scores, out_scores = random.exponential(1, (20_000, 30)), random.exponential(4, (20_000, 20))
    above = out_scores[:, None] > in_scores[:, :, None]
    found = auroc_interval_from_counts(0.8, 30, 20)  # 4 / (4 + 1)
    assert above.mean() == pytest.approx(found.auroc, abs=0.002)
    deviation = above.mean(axis=(1, 2)).std()
    assert (found.high - found.low) / (2 * Z) == pytest.approx(deviation, rel=0.02)


def by_definition(in_scores: np.ndarray, *sets: np.ndarray) -> tuple[float, float]:
    """Return the mean AUROC and DeLong's variance from all pairs of samples, in O(n^2)."""
    pairs = [(s[None] > in_scores[:, None]) + 0.5 * (s[None] == in_scores[:, None]) for s in sets]
    above = np.mean([each.mean(axis=1) for each in pairs], axis=0)
    variance = above.var(ddof=1) / len(above)
    for each in pairs:
        below = each.mean(axis=0)
        variance += below.var(ddof=1) / len(below) / len(sets) ** 2
    return float(np.mean([each.mean() for each in pairs])), float(variance)


tied = st.lists(st.integers(0, 6).map(float), min_size=2, max_size=30)


@given(tied, st.lists(tied, min_size=1, max_size=3))
def test_tied_scores_of_several_sets_agree_with_the_definition(in_scores, sets) -> None:
    arrays = [np.array(each) for each in (in_scores, *sets)]
    auroc, variance = by_definition(*arrays)
    found = auroc_interval(*map(torch.tensor, arrays))
    assert found.auroc == pytest.approx(auroc, abs=1e-12)
    if 0 < auroc < 1:
        margin = Z * math.sqrt(variance)
        expected = max(auroc - margin, 0), min(auroc + margin, 1)
        assert (found.low, found.high) == pytest.approx(expected, abs=1e-12)


def test_the_auroc_is_that_of_scikit_learn_for_many_samples() -> None:
    random = np.random.default_rng(0)
    in_scores, out_scores = random.normal(0, 1, 60_000), random.normal(1, 2, 90_000)
    found = auroc_interval(torch.tensor(in_scores), torch.tensor(out_scores))
    ood = np.repeat([0, 1], [60_000, 90_000])
    expected = roc_auc_score(ood, np.concatenate([in_scores, out_scores]))
    assert found.auroc == pytest.approx(expected, abs=1e-12)
    assert found.low < expected < found.high < found.low + 0.01


@pytest.mark.parametrize("sets", [1, 3])
def test_the_interval_agrees_with_a_bootstrap(sets: int) -> None:
    random = np.random.default_rng(1)
    arrays = [random.normal(0, 1, 300), *(random.normal(1.2, 1.5, 200) for _ in range(sets))]
    means = []
    for _ in range(2000):
        drawn = [random.choice(each, len(each)) for each in arrays]
        means.append(auroc_interval(*map(torch.tensor, drawn)).auroc)
    found = auroc_interval(*map(torch.tensor, arrays))
    # the ends of a bootstrap of this size have a standard error of about 0.0007
    assert (found.low, found.high) == pytest.approx(np.quantile(means, [0.025, 0.975]), abs=0.004)


def test_both_intervals_cover_the_true_value_in_95_per_cent_of_experiments() -> None:
    random = np.random.default_rng(2)
    truth, covered = 2 / 3, np.zeros(2)  # of exponential scores with rates 2 and 1
    for _ in range(1000):
        scores = torch.tensor(random.exponential(0.5, 80)), torch.tensor(random.exponential(1, 60))
        delong = auroc_interval(*scores)
        both = delong, auroc_interval_from_counts(delong.auroc, 80, 60)
        covered += [each.low <= truth <= each.high for each in both]
    assert (np.abs(covered / 1000 - 0.95) < 0.02).all()


def test_a_perfect_separation_of_few_samples_is_no_certainty() -> None:
    delong = auroc_interval(torch.zeros(50), torch.ones(20))
    assert delong == auroc_interval_from_counts(1.0, 50, 20)
    # of 20 independent pairs, all are ordered correctly with a probability of 2.5 %
    assert delong.low**20 == pytest.approx(0.025)
    assert (delong.auroc, delong.high) == (1.0, 1.0)
    reverse = auroc_interval(torch.ones(50), torch.zeros(20))
    assert (reverse.low, reverse.high) == (0.0, pytest.approx(1 - delong.low))


def test_more_samples_narrow_the_interval() -> None:
    widths = [
        found.high - found.low
        for found in (auroc_interval_from_counts(0.9, n, n) for n in (100, 400))
    ]
    assert widths[0] / widths[1] == pytest.approx(2, rel=0.01)


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: auroc_interval(torch.zeros(3)), "at least one OOD set"),
        (lambda: auroc_interval(torch.zeros(3), torch.zeros(1)), "two scores, got 1"),
        (lambda: auroc_interval(torch.tensor([0, math.nan]), torch.ones(2)), "in_scores: 1 of 2"),
        (lambda: auroc_interval_from_counts(1.2, 3, 3), "between 0 and 1, got 1.2"),
        (lambda: auroc_interval_from_counts(math.nan, 3, 3), "between 0 and 1, got nan"),
        (lambda: auroc_interval_from_counts(0.9, 3, 0), "at least 1, got 3 and 0"),
    ],
)  # fmt: skip
def test_what_has_no_interval_is_refused(call, message: str) -> None:
    with pytest.raises(UserError, match=message):
        call()
