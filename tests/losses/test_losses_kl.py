"""The KL losses against torch.distributions, and against mpmath for extreme logits."""

import math

import mpmath
import pytest
import torch
from torch.distributions import Dirichlet, kl_divergence

from dpn_plugin.functional import dirichlet_kl
from dpn_plugin.losses import ForwardKLLoss, ReverseKLLoss


def expected(
    kind,
    logits,
    target,
    class_concentration=100.0,
    other_concentration=1.0,
    ood_concentration=1.0,
):
    """The divergence of each sample by torch.distributions."""
    beta = torch.full_like(logits, other_concentration)
    beta[target < 0] = ood_concentration
    inside = target >= 0
    beta[inside, target[inside]] = class_concentration
    model, goal = Dirichlet(logits.exp()), Dirichlet(beta)
    return kl_divergence(model, goal) if kind is ReverseKLLoss else kl_divergence(goal, model)


def exact_kl(a, b):
    """KL(Dir(a) || Dir(b)) with 80 digits."""
    with mpmath.workdps(80):
        a0, b0 = mpmath.fsum(a), mpmath.fsum(b)
        value = mpmath.loggamma(a0) - mpmath.loggamma(b0)
        for x, y in zip(a, b, strict=True):
            value += mpmath.loggamma(y) - mpmath.loggamma(x)
            value += (x - y) * (mpmath.digamma(x) - mpmath.digamma(a0))
        return float(value)


both = pytest.mark.parametrize("kind", [ReverseKLLoss, ForwardKLLoss])


@both
@pytest.mark.parametrize(
    "targets",
    [{}, {"ood_concentration": 0.1}, {"class_concentration": 7, "other_concentration": 3}],
)
def test_values_are_those_of_torch_distributions(kind, targets, logits, target):
    values = kind(**targets, reduction="none")(logits, target)
    torch.testing.assert_close(values, expected(kind, logits, target, **targets))


@both
@pytest.mark.parametrize("row", [[50, -50, 0], [50, 50, 50], [-50, -50, -50], [-50, 20, 49.5]])
@pytest.mark.parametrize("label", [0, 1, -1])
@pytest.mark.parametrize(("dtype", "rtol"), [(torch.float32, 1e-4), (torch.float64, 1e-9)])
def test_exact_up_to_fifty(kind, row, label, dtype, rtol):
    beta = [mpmath.mpf(100 if c == label else 1) for c in range(3)]
    with mpmath.workdps(80):
        alpha = [mpmath.exp(z) for z in row]
    pair = (alpha, beta) if kind is ReverseKLLoss else (beta, alpha)
    value = kind()(torch.tensor([row], dtype=dtype), torch.tensor([label]))
    assert value.item() == pytest.approx(exact_kl(*pair), rel=rtol)


@both
def test_zero_exactly_at_the_target(kind):
    logits = torch.tensor([[100.0, 1.0, 1.0], [1.0, 1.0, 1.0]], dtype=torch.float64).log()
    logits.requires_grad_()
    value = kind()(logits, torch.tensor([0, -1]))
    value.backward()
    assert value.item() == pytest.approx(0, abs=1e-12)
    assert logits.grad.abs().max() < 1e-9


@both
@pytest.mark.parametrize(
    "name", ["class_concentration", "other_concentration", "ood_concentration"]
)
@pytest.mark.parametrize("value", [0, -1, float("inf"), float("nan")])
def test_target_concentrations_must_be_positive(kind, name, value):
    with pytest.raises(ValueError, match=f"{name} must be a finite number above 0, not {value}"):
        kind(**{name: value})


def test_beyond_sixty_the_concentration_follows_the_tangent_of_exp():
    z = torch.tensor([[61.5, 60.0, -60.0]], dtype=torch.float64)
    log_alpha = torch.tensor([[60 + math.log(2.5), 60.0, -60.0]], dtype=torch.float64)
    flat, ood = torch.zeros_like(z), torch.tensor([-1])
    torch.testing.assert_close(ReverseKLLoss()(z, ood), dirichlet_kl(log_alpha, flat)[0])
    torch.testing.assert_close(ForwardKLLoss()(z, ood), dirichlet_kl(flat, log_alpha)[0])


@both
def test_the_loss_grows_beyond_the_bound_without_a_jump(kind):
    z = torch.linspace(55, 70, 301, dtype=torch.float64)
    rows = torch.stack([z, 0 * z, 0 * z], dim=1)
    values = kind(reduction="none")(rows, torch.full((301,), 1))
    steps = values.diff()
    assert (steps > 0).all()
    assert (steps[1:] < 1.2 * steps[:-1]).all()
