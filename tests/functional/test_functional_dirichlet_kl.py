"""The divergence between two Dirichlet distributions."""

import exact_dirichlet
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from logit_cases import KINDS, logits_of
from torch import Tensor
from torch.distributions import Dirichlet, kl_divergence

from dpn_plugin.functional import dirichlet_kl

LOGITS = st.lists(st.floats(-40, 40), min_size=2, max_size=2)


def pair(kind: str, classes: int, bound: float, count: int = 8) -> tuple[Tensor, Tensor]:
    log_p = logits_of(kind, count, classes, bound)
    return log_p, logits_of("anywhere", count, classes, bound)


def assert_exact(log_p: Tensor, log_q: Tensor, rel: float) -> None:
    for p, q, kl in zip(log_p, log_q, dirichlet_kl(log_p, log_q), strict=True):
        exact = float(exact_dirichlet.dirichlet_kl(p.tolist(), q.tolist()))
        assert kl.item() == pytest.approx(exact, rel=rel, abs=rel)


@pytest.mark.parametrize("classes", [2, 3, 10])
@pytest.mark.parametrize("kind", KINDS)
def test_both_directions_are_exact_in_float64(kind: str, classes: int) -> None:
    log_p, log_q = pair(kind, classes, bound=20)
    assert_exact(log_p, log_q, rel=1e-9)
    assert_exact(log_q, log_p, rel=1e-9)


@pytest.mark.parametrize("kind", KINDS)
def test_both_directions_are_exact_in_float32(kind: str) -> None:
    log_p, log_q = (logits.float() for logits in pair(kind, 3, bound=10))
    assert_exact(log_p, log_q, rel=1e-4)
    assert_exact(log_q, log_p, rel=1e-4)


@pytest.mark.parametrize("classes", [2, 5, 100])
def test_it_equals_the_divergence_of_torch(classes: int) -> None:
    log_p, log_q = pair("anywhere", classes, bound=2)
    expected = kl_divergence(Dirichlet(log_p.exp()), Dirichlet(log_q.exp()))
    torch.testing.assert_close(dirichlet_kl(log_p, log_q), expected)
    expected = kl_divergence(Dirichlet(log_q.exp()), Dirichlet(log_p.exp()))
    torch.testing.assert_close(dirichlet_kl(log_q, log_p), expected)


@given(LOGITS, LOGITS)
def test_it_is_never_negative(p: list[float], q: list[float]) -> None:
    log_p, log_q = (torch.tensor([v], dtype=torch.float64) for v in (p, q))
    rounding = 1e-12 * (1 + max(p + q, key=abs) ** 2)
    assert dirichlet_kl(log_p, log_q).item() >= -rounding


def test_what_float32_cannot_hold_is_infinite_and_not_nan() -> None:
    log_p, log_q = torch.tensor([[-50.0, -49.0, -51.0]]), torch.tensor([[50.0, 51.0, 49.0]])
    assert dirichlet_kl(log_p, log_q).item() == torch.inf
    assert dirichlet_kl(log_q, log_p).isfinite().all()
    assert_exact(log_p.double(), log_q.double(), rel=1e-9)


@pytest.mark.parametrize("classes", [2, 3, 1000])
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_the_divergence_of_equal_distributions_is_zero(classes: int, dtype: torch.dtype) -> None:
    logits = logits_of("anywhere", 20, classes, bound=50).to(dtype)
    assert torch.equal(dirichlet_kl(logits, logits), torch.zeros(20, dtype=dtype))


@pytest.mark.parametrize("kind", ["anywhere", "all equal", "one dominates"])
@pytest.mark.parametrize("classes", [2, 4])
def test_gradients_agree_with_finite_differences(kind: str, classes: int) -> None:
    log_p, log_q = (logits.requires_grad_() for logits in pair(kind, classes, bound=3, count=3))
    assert torch.autograd.gradcheck(dirichlet_kl, (log_p, log_q))


def test_the_gradient_at_equal_arguments_is_zero() -> None:
    logits = logits_of("anywhere", 5, 4, bound=3).requires_grad_()
    dirichlet_kl(logits, logits.detach()).sum().backward()
    torch.testing.assert_close(logits.grad, torch.zeros(5, 4, dtype=torch.float64))


def test_one_target_broadcasts_to_all_samples() -> None:
    log_p, target = logits_of("anywhere", 6, 3, bound=5), torch.tensor([[4.6, 0.0, 0.0]])
    repeated = target.double().repeat(6, 1)
    torch.testing.assert_close(dirichlet_kl(log_p, target), dirichlet_kl(log_p, repeated))
    torch.testing.assert_close(dirichlet_kl(target, log_p), dirichlet_kl(repeated, log_p))


def test_a_map_has_the_divergences_of_its_pixels() -> None:
    log_p, log_q = (v.reshape(2, 2, 2, 3).movedim(-1, 1) for v in pair("anywhere", 3, bound=5))
    rows = dirichlet_kl(*pair("anywhere", 3, bound=5))
    torch.testing.assert_close(dirichlet_kl(log_p, log_q), rows.reshape(2, 2, 2))


def test_half_precision_is_computed_in_float32() -> None:
    log_p, log_q = (logits.half() for logits in pair("anywhere", 3, bound=5))
    divergence = dirichlet_kl(log_p, log_q)
    assert divergence.dtype == torch.float32
    assert torch.equal(divergence, dirichlet_kl(log_p.float(), log_q.float()))
