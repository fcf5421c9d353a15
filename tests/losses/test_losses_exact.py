"""The evidential family against mpmath, from -60 to 60: values and gradients."""

import exact_evidential as exact
import mpmath as mp
import pytest
import torch

from dpn_plugin.functional import FlexibleDirichlet
from dpn_plugin.losses import (
    BeliefMatchingLoss,
    DensityAwareLoss,
    DistributionDistillationLoss,
    FisherEvidentialLoss,
    FlexibleEvidentialLoss,
    RelaxedEvidentialLoss,
    RevisitedEvidentialLoss,
)
from dpn_plugin.losses.fisher_evidential import fisher_log_determinant


def distillation(epoch=None, smoothing=1e-3, **options):
    loss = DistributionDistillationLoss(3, members=2, smoothing=smoothing, **options)
    if epoch is not None:
        loss.set_epoch(epoch)
    return loss


#: name: the loss, its formula, the number of its columns
LOSSES = {
    "r-edl": (RelaxedEvidentialLoss(), exact.relaxed, 3),
    "r-edl, lambda1": (
        RelaxedEvidentialLoss(lambda1=0.25, lambda2=2.0),
        lambda z, y: exact.relaxed(z, y, 0.25, 2.0),
        3,
    ),
    "re-edl": (RevisitedEvidentialLoss(), exact.revisited, 3),
    "i-edl": (FisherEvidentialLoss(), exact.fisher(exact.softplus), 3),
    "i-edl, exp": (FisherEvidentialLoss(evidence="exp"), exact.fisher(mp.exp), 3),
    "belief-matching": (BeliefMatchingLoss(), exact.belief_matching, 3),
    "daedl": (DensityAwareLoss(), exact.density_aware, 3),
    "f-edl": (FlexibleEvidentialLoss(3), exact.flexible, 7),
    "ensemble-distillation": (distillation(), exact.distillation(1, mp.mpf(1e-3)), 9),
    "ensemble-distillation, T=10": (distillation(0), exact.distillation(10, mp.mpf(1e-3)), 9),
    "ensemble-distillation, T=10, authors": (
        distillation(0, scale_logits=True),
        exact.distillation(10, mp.mpf(1e-3), scaled=True),
        9,
    ),
    "ensemble-distillation, plain": (distillation(smoothing=0), exact.distillation(1, 0), 9),
}


def rows(columns):
    """Corners of the range, and random rows."""
    generator = torch.Generator().manual_seed(columns)
    corners = [[60.0] * 9, [-60.0] * 9, [0.0] * 9, [60.0, -60.0, 0.0] * 3, [-60.0, 60.0, 59.5] * 3]
    corners += [[60.0, 0.0, -60.0, 30.0, -30.0, -60.0, 30.0, -30.0, -60.0]]
    wide = 120 * torch.rand(8, columns, dtype=torch.float64, generator=generator) - 60
    near = 5 * torch.randn(4, columns, dtype=torch.float64, generator=generator)
    return [row[:columns] for row in corners] + wide.tolist() + near.tolist()


@pytest.mark.parametrize("name", LOSSES)
def test_values_and_gradients_are_exact_from_minus_sixty_to_sixty(name):
    loss, formula, columns = LOSSES[name]
    for number, row in enumerate(rows(columns)):
        y = number % 3
        z = torch.tensor([row], dtype=torch.float64, requires_grad=True)
        value = loss(z, torch.tensor([y]))
        value.backward()
        with mp.workdps(exact.DIGITS):
            point = [mp.mpf(x) for x in row]
            assert value.item() == pytest.approx(float(formula(point, y)), rel=1e-12)
            slopes = [float(each) for each in exact.gradient(formula, point, y)]
        largest = max(map(abs, slopes))
        assert z.grad[0].tolist() == pytest.approx(slopes, rel=1e-11, abs=1e-12 * largest)


@pytest.mark.parametrize("name", LOSSES)
def test_float32_keeps_its_digits(name):
    loss, formula, columns = LOSSES[name]
    for row in rows(columns):
        value = loss(torch.tensor([row]), torch.tensor([1]))
        with mp.workdps(exact.DIGITS):
            point = [mp.mpf(float(x)) for x in torch.tensor(row)]
            expected = float(formula(point, 1))
        assert value.item() == pytest.approx(expected, rel=2e-4, abs=2e-5)


@pytest.mark.parametrize("row", [[0, 0, 0], [60, 60, 60], [60, 0, 30], [1, 2, 0.5]])
def test_the_fisher_determinant_is_that_of_the_matrix(row):
    found = fisher_log_determinant(torch.tensor([row], dtype=torch.float64))
    with mp.workdps(exact.DIGITS):
        alpha = [mp.exp(x) for x in row]
        shared = mp.psi(1, mp.fsum(alpha))
        matrix = mp.diag([mp.psi(1, a) for a in alpha]) - shared * mp.ones(3)
        expected = float(mp.log(mp.det(matrix)))
    assert found.item() == pytest.approx(expected, rel=1e-13)


@pytest.mark.parametrize("row", rows(7))
def test_the_logits_of_a_flexible_dirichlet_have_its_mean_and_variance(row):
    loss = FlexibleEvidentialLoss(3)
    logits = loss.log_concentrations(torch.tensor([row], dtype=torch.float64))[0]
    with mp.workdps(exact.DIGITS):
        _, mean, variance = exact.flexible_moments([mp.mpf(x) for x in row])
        alpha = [mp.exp(mp.mpf(x)) for x in logits.tolist()]
        s = mp.fsum(alpha)
        for a, m in zip(alpha, mean, strict=True):
            assert float(mp.log(a / s) - mp.log(m)) == pytest.approx(0, abs=1e-13)
        matched = (1 - mp.fsum((a / s) ** 2 for a in alpha)) / (s + 1)
        assert float(mp.log(matched) - mp.log(mp.fsum(variance))) == pytest.approx(0, abs=1e-12)


def test_the_moments_of_a_flexible_dirichlet_are_those_of_its_mixture():
    torch.manual_seed(0)
    alpha, p, tau = torch.tensor([2.0, 0.5, 1.0]), torch.tensor([0.2, 0.7, 0.1]), 3.0
    chosen = torch.multinomial(p, 400_000, replacement=True)
    raised = alpha + tau * torch.eye(3)[chosen]
    drawn = torch.distributions.Dirichlet(raised).sample()
    flexible = FlexibleDirichlet(alpha.log()[None], p.log()[None], torch.tensor([[tau]]).log())
    torch.testing.assert_close(flexible.log_mean().exp()[0], drawn.mean(0), rtol=0.01, atol=0)
    total = flexible.log_variance().exp().squeeze()
    torch.testing.assert_close(total, drawn.var(0).sum(), rtol=0.01, atol=0)


def test_without_dispersion_the_flexible_dirichlet_is_a_dirichlet():
    alpha = torch.tensor([[2.0, 0.5, 1.0]], dtype=torch.float64).log()
    p = torch.tensor([[0.2, 0.7, 0.1]], dtype=torch.float64).log()
    flexible = FlexibleDirichlet(alpha, p, torch.tensor([[-80.0]], dtype=torch.float64))
    torch.testing.assert_close(flexible.log_concentrations(), alpha)
