"""The Gaussian gap against torch.distributions."""

import math

import pytest
import torch
from torch.distributions import MultivariateNormal, kl_divergence

from dpn_plugin.errors import UserError
from dpn_plugin.metrics import gaussian_gap


def cloud(seed, shift=0.0, count=200):
    generator = torch.Generator().manual_seed(seed)
    points = torch.randn(count, 2, generator=generator)
    return points @ torch.tensor([[0.01, 0.02], [0.0, 3.0]]) + shift


def fitted(points):
    points = points.double()
    centred = points - points.mean(dim=0)
    return MultivariateNormal(points.mean(dim=0), centred.T @ centred / (len(points) - 1))


def test_both_directions_follow_the_definition():
    correct, wrong, ood = cloud(0), cloud(1, 0.5), 2 * cloud(2, 1.0)
    gap = gaussian_gap(correct, wrong, ood)
    pairs = {
        "kl_correct_ood": (correct, ood),
        "kl_ood_correct": (ood, correct),
        "kl_misclassified_ood": (wrong, ood),
        "kl_ood_misclassified": (ood, wrong),
    }
    expected = {k: kl_divergence(fitted(p), fitted(q)).item() for k, (p, q) in pairs.items()}
    assert gap == pytest.approx(expected, rel=1e-6)
    assert gap["kl_correct_ood"] != pytest.approx(gap["kl_ood_correct"], rel=0.1)


def test_ood_like_correct_samples_leave_no_gap():
    assert gaussian_gap(cloud(0), cloud(1), cloud(0))["kl_correct_ood"] == pytest.approx(
        0, abs=1e-9
    )


LINE = torch.arange(10.0)[:, None] * torch.tensor([1.0, 2.0])
CONSTANT = torch.tensor([[0.1, float(i)] for i in range(10)])


@pytest.mark.parametrize("points", [torch.zeros(0, 2), cloud(0, count=2), LINE, CONSTANT])
def test_points_without_a_gaussian_give_no_figure(points):
    gap = gaussian_gap(cloud(0), points, cloud(1))
    assert math.isnan(gap["kl_misclassified_ood"])
    assert math.isnan(gap["kl_ood_misclassified"])
    assert gap["kl_correct_ood"] >= 0


@pytest.mark.parametrize(
    "points", [torch.zeros(5), torch.zeros(5, 3), torch.full((5, 2), math.inf)]
)
def test_points_that_are_none_are_refused(points):
    with pytest.raises(UserError, match="correct"):
        gaussian_gap(points, cloud(0), cloud(1))
