"""Selective classification against figures of torch-uncertainty, counting, and every order."""

from itertools import permutations

import numpy as np
import pytest
import torch

from dpn_plugin.errors import UserError
from dpn_plugin.metrics import risk_coverage, selective_metrics


def _case(n: int, m: int) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
    """Confidence of in-domain samples, whether they are correct, confidence of OOD samples."""
    i, j = torch.arange(n), torch.arange(m)
    confidence = 0.5 + 0.5 * ((i * 37) % n + 0.5) / n
    wrong = ((i * i * 7) % 13) / 13 > confidence - 0.2
    out = 0.5 + 0.5 * (((j * 11) % m + 0.25) / m) * 0.8
    return confidence.double(), ~wrong, out.double()


# AURC, AUGRC and CovAtxRisk of torch-uncertainty 0.13.0 for the same numbers
@pytest.mark.parametrize(
    ("n", "m", "with_ood", "aurc", "augrc", "coverage"),
    [
        (101, 47, False, 0.23077940351394044, 0.14217821747644732, 0.039603959769010544),
        (101, 47, True, 0.3954485854321874, 0.24105993752960253, 0.027027027681469917),
        (997, 401, False, 0.22820852733442973, 0.13697971422751862, 0.002006018068641424),
        (997, 401, True, 0.37610557121656446, 0.22689945660882127, 0.0014306152006611228),
    ],
)
def test_figures_are_those_of_torch_uncertainty(n, m, with_ood, aurc, augrc, coverage):
    confidence, correct, out = _case(n, m)
    found = selective_metrics(-confidence, correct, -out if with_ood else None)
    assert found["aurc"] == pytest.approx(aurc, rel=1e-6)
    assert found["augrc"] == pytest.approx(augrc, rel=1e-6)
    assert found["coverage@0.05"] == pytest.approx(coverage, rel=1e-6)


def test_the_curve_counts_errors_among_accepted_samples():
    scores, correct = torch.tensor([3.0, 1.0, 2.0, 4.0]), torch.tensor([False, True, True, True])
    curve = risk_coverage(scores, correct, torch.tensor([2.5]))
    assert curve.coverage.tolist() == [0.2, 0.4, 0.6, 0.8, 1.0]
    assert curve.risk.tolist() == [0, 0, 1 / 3, 2 / 4, 2 / 5]  # the OOD sample, then the wrong one
    assert curve.generalized_risk.tolist() == [0, 0, 1 / 5, 2 / 5, 2 / 5]
    assert curve.is_threshold.all()


def test_equal_scores_give_the_mean_over_all_orders():
    scores = torch.tensor([0.0, 1.0, 1.0, 1.0, 2.0])
    correct = torch.tensor([True, False, True, False, True])
    found = selective_metrics(scores, correct)
    orders = [[0, *order, 4] for order in permutations([1, 2, 3])]
    # distinct scores in each of the orders
    each = [selective_metrics(torch.arange(5.0), correct[torch.tensor(order)]) for order in orders]
    for name in ("aurc", "augrc"):
        assert found[name] == pytest.approx(np.mean([one[name] for one in each]), rel=1e-12)


def test_coverage_is_that_of_a_threshold_which_cannot_divide_equal_scores():
    scores, correct = torch.zeros(100), torch.arange(100) < 90
    assert selective_metrics(scores, correct) == {
        "aurc": pytest.approx(0.1),
        "augrc": pytest.approx(0.0505),
        "coverage@0.01": 0.0,
        "coverage@0.05": 0.0,
        "coverage@0.1": 1.0,
    }


def test_perfect_rejection_covers_all_correct_samples_and_no_ood():
    scores, correct = torch.arange(100.0), torch.arange(100) < 80
    found = selective_metrics(scores, correct, torch.arange(100.0, 200.0))
    assert found["coverage@0.01"] == 0.4
    assert found["coverage@0.1"] == 88 / 200  # 8 of 88 are errors, 9 of 89 are too many


def test_broken_input_is_refused():
    with pytest.raises(UserError, match="correct has shape"):
        selective_metrics(torch.zeros(3), torch.ones(2).bool())
    with pytest.raises(UserError, match="out_scores: 1 of 1"):
        selective_metrics(torch.zeros(3), torch.ones(3).bool(), torch.tensor([torch.nan]))
