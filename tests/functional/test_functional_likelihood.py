"""Likelihoods, the trigamma function and sums of variances against mpmath, scipy and torch."""

import mpmath
import pytest
import torch
from torch.distributions import Dirichlet

from dpn_plugin.functional import (
    dirichlet_nll,
    expected_cross_entropy,
    log_others,
    log_total_variance,
    trigamma_remainder,
)

GRID = torch.linspace(-60, 60, 241, dtype=torch.float64)


def test_the_trigamma_remainder_is_exact():
    with mpmath.workdps(80):
        numbers = [mpmath.exp(mpmath.mpf(z)) for z in GRID.tolist()]
        expected = [float(a**2 * mpmath.psi(1, a) - a) for a in numbers]
    assert trigamma_remainder(GRID).tolist() == pytest.approx(expected, rel=2e-15)


def test_the_slope_of_the_trigamma_remainder_is_exact():
    z = GRID.clone().requires_grad_()
    trigamma_remainder(z).sum().backward()
    with mpmath.workdps(80):
        numbers = [mpmath.exp(mpmath.mpf(z)) for z in GRID.tolist()]
        slopes = [
            float(a * (2 * a * mpmath.psi(1, a) + a**2 * mpmath.psi(2, a) - 1)) for a in numbers
        ]
    assert z.grad.tolist() == pytest.approx(slopes, rel=1e-11)


def test_the_sum_of_the_other_classes_does_not_cancel():
    z = torch.tensor([[40.0, -40.0, -41.0], [1.0, 1.0, 1.0], [-700.0, 3.0, 2.0]])
    expected = [
        [torch.logsumexp(torch.cat([row[:c], row[c + 1 :]]), 0) for c in range(3)]
        for row in z.double()
    ]
    torch.testing.assert_close(log_others(z.double()), torch.tensor(expected).double())


def test_the_likelihood_is_that_of_torch_distributions():
    torch.manual_seed(0)
    z, p = torch.randn(5, 4).double(), torch.randn(3, 5, 4).double().log_softmax(2)
    expected = -Dirichlet(z.exp()).log_prob(p.exp()).mean(dim=0)
    torch.testing.assert_close(dirichlet_nll(z, p), expected)


@pytest.mark.parametrize("apart", [0.0, 1e-12, 1e-6, 0.1, 5.0])
def test_the_likelihood_of_members_that_nearly_agree_is_exact(apart):
    z = torch.tensor([[30.0, 28.0, 25.0]], dtype=torch.float64)
    steps = torch.tensor([[[1.0, -1.0, 0.5]], [[-1.0, 1.0, 0.25]]]).double()
    logits = z + apart * steps
    value = dirichlet_nll(z, logits.log_softmax(2))
    with mpmath.workdps(80):
        alpha = [mpmath.exp(x) for x in z[0].tolist()]
        exact = mpmath.fsum(map(mpmath.loggamma, alpha)) - mpmath.loggamma(mpmath.fsum(alpha))
        for member in logits[:, 0].tolist():
            e = [mpmath.exp(mpmath.mpf(x)) for x in member]
            exact -= mpmath.fsum(
                (a - 1) * mpmath.log(x / mpmath.fsum(e)) for a, x in zip(alpha, e, strict=True)
            ) / len(logits)
        assert value.item() == pytest.approx(float(exact), rel=1e-9)


@pytest.mark.parametrize("row", [[40, -40, -45], [-40, 40, 0], [-60, -60, -60], [-20, -60, -59]])
@pytest.mark.parametrize("y", [0, 1])
def test_the_expected_cross_entropy_is_exact(row, y):
    right = torch.arange(3)[None] == y
    found = expected_cross_entropy(torch.tensor([row], dtype=torch.float64), right)
    with mpmath.workdps(80):
        alpha = [mpmath.exp(x) for x in row]
        expected = float(mpmath.digamma(mpmath.fsum(alpha)) - mpmath.digamma(alpha[y]))
    assert found.item() == pytest.approx(expected, rel=1e-13)


def test_the_total_variance_is_that_of_the_dirichlet():
    torch.manual_seed(0)
    z = 3 * torch.randn(50, 4).double()
    expected = Dirichlet(z.exp()).variance.sum(dim=1).log()
    torch.testing.assert_close(log_total_variance(z), expected)


@pytest.mark.parametrize("row", [[60, -60, -60], [-60, -60, -60], [60, 60, 60], [0, 40, -40]])
def test_the_total_variance_is_exact(row):
    found = log_total_variance(torch.tensor([row], dtype=torch.float64))
    with mpmath.workdps(150):
        alpha = [mpmath.exp(x) for x in row]
        total = mpmath.fsum(alpha)
        spread = 1 - mpmath.fsum((a / total) ** 2 for a in alpha)
        expected = float(mpmath.log(spread / (1 + total)))
    assert found.item() == pytest.approx(expected, rel=1e-14)


def test_the_total_variance_is_finite_for_all_finite_logits():
    z = torch.tensor([[1e4, -1e4], [-1e4, -1e4], [1e4, 1e4], [1e30, 0.0]])
    assert torch.isfinite(log_total_variance(z)).all()
    image = torch.randn(2, 3, 4, 5)
    assert log_total_variance(image).shape == (2, 4, 5)
