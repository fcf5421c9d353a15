"""Fisher's combination against scipy, and its promise for members that depend on each other."""

import numpy as np
import pytest
import torch
from scipy.stats import chi2, combine_pvalues

from dpn_plugin.errors import UserError
from dpn_plugin.metrics import FisherCombination, conformal_p_values


def _dependent(n: int, generator: torch.Generator, shift: float = 0.0) -> torch.Tensor:
    """Scores of three members that mostly agree."""
    common = torch.randn(n, 1, generator=generator)
    return shift + common + 0.2 * torch.randn(n, 3, generator=generator)


def test_the_statistic_is_scipys_of_the_members_p_values():
    generator = torch.Generator().manual_seed(0)
    combined = FisherCombination(_dependent(101, generator))
    new = _dependent(20, generator)
    p_values = [
        conformal_p_values(reference, scores)
        for reference, scores in zip(combined.reference.T, new.T, strict=True)
    ]
    expected = combine_pvalues(torch.stack(p_values).numpy(), method="fisher", axis=0).statistic
    assert combined.scores(new).numpy() == pytest.approx(expected, rel=1e-12)
    assert combined.reference.shape == (50, 3)
    assert combined.calibration.shape == (51,)


def test_the_halves_are_random_and_the_same_every_time():
    calibration = torch.arange(100.0).repeat(2, 1).T  # sorted, as samples may be by class
    first = FisherCombination(calibration).reference[:, 0]
    assert torch.equal(first, FisherCombination(calibration).reference[:, 0])
    assert 35 < first.mean() < 65
    assert set(first.int().tolist()) != set(range(0, 100, 2))


@pytest.mark.parametrize("alpha", [0.05, 0.1])
def test_dependent_members_keep_the_promise_that_fishers_own_distribution_breaks(alpha):
    generator = torch.Generator().manual_seed(1)
    rejected, by_chi2 = [], []
    for _ in range(300):
        combined = FisherCombination(_dependent(200, generator))
        statistic = combined.scores(_dependent(200, generator))
        p_values = conformal_p_values(combined.calibration, statistic)
        rejected.append(float((p_values <= alpha).double().mean()))
        by_chi2.append(float((chi2.sf(statistic, 6) <= alpha).mean()))
    error = np.std(rejected) / np.sqrt(len(rejected))
    exact = np.floor(alpha * 101) / 101
    assert abs(np.mean(rejected) - exact) < 4 * error
    assert np.mean(by_chi2) > 1.3 * alpha


def test_far_samples_are_found():
    generator = torch.Generator().manual_seed(2)
    combined = FisherCombination(_dependent(400, generator))
    found = conformal_p_values(combined.calibration, combined.scores(_dependent(50, generator, 9)))
    assert (found <= 0.01).all()


def test_one_member_or_other_members_are_refused():
    with pytest.raises(UserError, match="at least 2 detectors"):
        FisherCombination(torch.zeros(10, 1))
    with pytest.raises(UserError, match="each of 2 members"):
        FisherCombination(torch.zeros(10, 2)).scores(torch.zeros(3, 4))
