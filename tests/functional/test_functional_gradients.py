"""Gradients are right where the measure is smooth, and finite wherever the value is."""

import pytest
import torch
from exact_dirichlet import MEASURES
from logit_cases import KINDS, logits_of
from torch import Tensor

from dpn_plugin import functional

SMOOTH = tuple(name for name in MEASURES if "max_p" not in name)
POINTS = {
    "random": logits_of("anywhere", 4, 4, bound=4),
    "two random classes": logits_of("anywhere", 4, 2, bound=4),
    "two classes near the uniform Dirichlet": torch.tensor([[0.1, -0.2], [0.3, 0.3]]).double(),
    "confident": torch.tensor([[12.0, 0.0, -3.0], [25.0, 1.0, 1.0]], dtype=torch.float64),
    "out of distribution": torch.tensor([[-6.0, -4.0, -5.0]], dtype=torch.float64),
}
TIED = torch.tensor([[1.5, 1.5, 1.5], [2.0, 2.0, -1.0], [-3.0, -3.0, -3.0]], dtype=torch.float64)


def gradient(name: str, logits: Tensor) -> tuple[Tensor, Tensor]:
    logits = logits.clone().requires_grad_()
    value = getattr(functional, name)(logits)
    value.sum().backward()
    return value.detach(), logits.grad


@pytest.mark.parametrize("where", POINTS)
@pytest.mark.parametrize("name", MEASURES)
def test_gradients_agree_with_finite_differences(name: str, where: str) -> None:
    assert torch.autograd.gradcheck(getattr(functional, name), POINTS[where].requires_grad_())


@pytest.mark.parametrize("name", SMOOTH)
def test_gradients_are_right_where_classes_tie(name: str) -> None:
    assert torch.autograd.gradcheck(getattr(functional, name), TIED.clone().requires_grad_())


@pytest.mark.parametrize("level", [-3.0, 0.5, 1.5, 6.0])
@pytest.mark.parametrize("name", SMOOTH)
def test_gradients_do_not_jump_where_classes_nearly_tie(name: str, level: float) -> None:
    tied = torch.full((1, 3), level, dtype=torch.float64)
    _, expected = gradient(name, tied)
    for steps in range(1, 8):
        near = tied.clone()
        near[0, 1] += steps * 2.0**-52 * abs(level)
        torch.testing.assert_close(gradient(name, near)[1], expected, rtol=1e-6, atol=1e-9)


def test_the_one_pass_function_has_the_gradients_of_the_single_ones() -> None:
    logits = POINTS["random"].detach()
    for name in functional.DirichletMeasures._fields:
        shared = logits.clone().requires_grad_()
        getattr(functional.dirichlet_measures(shared), name).sum().backward()
        torch.testing.assert_close(shared.grad, gradient(name, logits)[1])


def test_tied_winners_share_the_gradient_of_max_p() -> None:
    _, grad = gradient("max_p", torch.tensor([[2.0, 2.0, -1.0]]))
    assert grad[0, 0] == grad[0, 1] > 0
    assert grad.sum().item() == pytest.approx(0, abs=1e-7)


@pytest.mark.parametrize("classes", [2, 3, 10])
@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("name", MEASURES)
def test_finite_up_to_80_in_float32_gradients(name: str, kind: str, classes: int) -> None:
    value, grad = gradient(name, logits_of(kind, 100, classes, bound=80).float())
    assert value.isfinite().all()
    assert grad.isfinite().all()


@pytest.mark.parametrize("name", MEASURES)
def test_finite_on_a_grid_of_two_logits(name: str) -> None:
    axis = torch.arange(-80.0, 81.0, 8.0)
    value, grad = gradient(name, torch.cartesian_prod(axis, axis))
    assert value.isfinite().all()
    assert grad.isfinite().all()
