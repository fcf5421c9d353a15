"""Paired differences of AUROC against scikit-learn, an exact bootstrap, and their coverage."""

import numpy as np
import pytest
import torch
from scipy import stats
from sklearn.metrics import roc_auc_score

from dpn_plugin.errors import UserError
from dpn_plugin.metrics import Placements, find_placements, paired_differences


def placed(inside: np.ndarray, *sets: np.ndarray) -> Placements:
    """Return the placements of scores that have the seeds along the first axis."""
    out_scores = [[torch.tensor(each[s]) for each in sets] for s in range(len(inside))]
    return find_placements([torch.tensor(scores) for scores in inside], out_scores)


def roc_auc(inside: np.ndarray, outside: np.ndarray) -> float:
    labels = np.repeat([0, 1], [len(inside), len(outside)])
    return float(roc_auc_score(labels, np.concatenate([inside, outside])))


def correlated(
    random: np.random.Generator, n: int, shifts: tuple[float, float], spread: float, seeds: int
) -> tuple[Placements, Placements]:
    """Return two detectors of the same samples; every seed shifts the OOD scores of each."""
    both = []
    inside, outside = random.normal(size=n), random.normal(size=n)
    for shift in shifts:
        moved = shift + spread * random.normal(size=(seeds, 1))
        noise = 0.5 * random.normal(size=(2, n))
        both.append((np.tile(inside + noise[0], (seeds, 1)), outside + noise[1] + moved))
    return placed(*both[0]), placed(*both[1])


def test_the_difference_is_that_of_scikit_learn_with_ties_seeds_and_sets() -> None:
    random = np.random.default_rng(0)
    one, other = (
        [random.integers(0, 6, (3, 40)), *(random.integers(1, 9, (3, m)) for m in (25, 60))]
        for _ in range(2)
    )
    [found] = paired_differences(placed(*one), [placed(*other)])
    expected = [
        np.mean([roc_auc(scores[0][s], each[s]) for each in scores[1:] for s in range(3)])
        for scores in (one, other)
    ]
    assert found.difference == pytest.approx(expected[0] - expected[1], abs=1e-6)
    assert found.low < found.difference < found.high
    assert found.seeds == 3


def test_the_interval_of_one_seed_is_that_of_an_exact_paired_bootstrap() -> None:
    random = np.random.default_rng(1)
    n, m = 300, 200
    inside, outside = random.normal(size=(2, n)), random.normal(1.0, 1.0, size=(2, m))
    inside[1] += 2 * inside[0]  # the detectors agree on much, which an unpaired bootstrap misses
    outside[1] += 2 * outside[0]
    one, other = (placed(inside[i][None], outside[i][None]) for i in range(2))
    [found] = paired_differences(one, [other], replicates=4000)
    exact = []
    for _ in range(700):
        i, j = random.integers(n, size=n), random.integers(m, size=m)
        exact.append(roc_auc(inside[0][i], outside[0][j]) - roc_auc(inside[1][i], outside[1][j]))
    width = (found.high - found.low) / (2 * 1.96)
    assert width == pytest.approx(np.std(exact), rel=0.08)
    unpaired = np.hypot(*(np.std(_unpaired(random, inside[i], outside[i])) for i in range(2)))
    assert width < 0.8 * unpaired


def _unpaired(random: np.random.Generator, inside: np.ndarray, outside: np.ndarray) -> list[float]:
    sides = inside, outside
    draws = ([random.choice(each, len(each)) for each in sides] for _ in range(300))
    return [roc_auc(*each) for each in draws]


@pytest.mark.parametrize(("spread", "seeds"), [(0.0, 1), (0.02, 3), (0.3, 3), (0.3, 5)])
def test_intervals_hold_the_true_difference_about_19_times_of_20(spread: float, seeds: int) -> None:
    """The spread over seeds is none, small, or much larger than that over samples."""
    random = np.random.default_rng(7)
    scale = np.sqrt(2 * 1.25 + spread**2)
    truth = stats.norm.cdf(1.0 / scale) - stats.norm.cdf(0.8 / scale)
    trials, held = 300, 0
    for _ in range(trials):
        one, other = correlated(random, 150, (1.0, 0.8), spread, seeds)
        [found] = paired_differences(one, [other], replicates=200)
        held += found.low <= truth <= found.high
    # 95 % less four standard deviations, and not so wide that it always holds
    assert 0.90 <= held / trials <= 0.995


def test_equal_detectors_are_called_ahead_about_one_time_in_forty() -> None:
    random = np.random.default_rng(3)
    pairs = (correlated(random, 100, (1.0, 1.0), 0.2, 3) for _ in range(300))
    verdicts = [paired_differences(a, [b], replicates=200)[0].verdict for a, b in pairs]
    assert verdicts.count("ahead") <= 18  # 2.5 % are expected, 6 % is four deviations more
    assert verdicts.count("undecided") >= 264


def test_a_clear_lead_is_called_ahead_and_the_other_way_round_behind() -> None:
    random = np.random.default_rng(4)
    one, other = correlated(random, 500, (2.0, 0.5), 0.01, 3)
    assert paired_differences(one, [other])[0].verdict == "ahead"
    assert paired_differences(other, [one])[0].verdict == "behind"


def test_a_detector_is_undecided_against_itself() -> None:
    one, _ = correlated(np.random.default_rng(5), 50, (1.0, 1.0), 0.1, 3)
    [found] = paired_differences(one, [one])
    assert (found.low, found.difference, found.high) == (0, 0, 0)
    assert found.verdict == "undecided"


def test_the_same_seed_gives_the_same_interval_whatever_else_is_compared() -> None:
    random = np.random.default_rng(6)
    one, other = correlated(random, 80, (1.0, 0.5), 0.1, 3)
    third, _ = correlated(random, 80, (0.2, 0.5), 0.1, 3)
    alone = paired_differences(one, [other])[0]
    among = paired_differences(one, [third, other])[1]
    assert (alone.low, alone.high) == pytest.approx((among.low, among.high), abs=1e-6)


def test_other_samples_on_both_sides_are_refused() -> None:
    random = np.random.default_rng(8)
    one, _ = correlated(random, 20, (1.0, 1.0), 0.1, 2)
    other, _ = correlated(random, 21, (1.0, 1.0), 0.1, 2)
    with pytest.raises(UserError, match=r"same seeds and samples .*\(2, 20\).*\(2, 21\)"):
        paired_differences(one, [other])


def test_seeds_with_other_samples_and_missing_sets_are_refused() -> None:
    scores = torch.arange(5.0)
    with pytest.raises(UserError, match="same samples"):
        find_placements([scores, scores[:4]], [[scores], [scores]])
    with pytest.raises(UserError, match="at least one OOD set"):
        find_placements([scores], [[]])
    with pytest.raises(UserError, match="there are 1 and 0"):
        find_placements([scores], [])
