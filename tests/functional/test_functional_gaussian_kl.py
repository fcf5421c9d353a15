"""The divergence between two Gaussians."""

import re

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch import Tensor
from torch.distributions import MultivariateNormal, kl_divergence

from dpn_plugin.functional import gaussian_kl


def gaussian(size: int, seed: int) -> tuple[Tensor, Tensor]:
    generator = torch.Generator().manual_seed(seed)
    root = torch.randn(size, size, generator=generator, dtype=torch.float64)
    covariance = root @ root.T + 0.1 * torch.eye(size, dtype=torch.float64)
    return torch.randn(size, generator=generator, dtype=torch.float64), covariance


@pytest.mark.parametrize("size", range(1, 7))
def test_it_equals_the_divergence_of_torch(size: int) -> None:
    first, second = gaussian(size, 1), gaussian(size, 2)
    expected = kl_divergence(MultivariateNormal(*first), MultivariateNormal(*second))
    torch.testing.assert_close(gaussian_kl(*first, *second), expected)


def test_it_equals_the_mean_log_ratio_of_samples() -> None:
    first, second = MultivariateNormal(*gaussian(2, 3)), MultivariateNormal(*gaussian(2, 4))
    with torch.random.fork_rng():
        torch.manual_seed(0)
        points = first.sample((200_000,))
    expected = (first.log_prob(points) - second.log_prob(points)).mean()
    torch.testing.assert_close(
        gaussian_kl(*gaussian(2, 3), *gaussian(2, 4)), expected, rtol=0.02, atol=0
    )


@given(st.integers(1, 5), st.integers(0, 1000))
def test_it_is_never_negative_and_zero_for_equal_ones(size: int, seed: int) -> None:
    first, second = gaussian(size, seed), gaussian(size, seed + 1)
    assert gaussian_kl(*first, *second) > 0
    assert gaussian_kl(*first, *first).item() == pytest.approx(0, abs=1e-9)


@given(st.integers(1, 4), st.integers(0, 1000), st.floats(-3, 3))
def test_it_is_invariant_under_affine_maps(size: int, seed: int, exponent: float) -> None:
    (m1, s1), (m2, s2) = gaussian(size, seed), gaussian(size, seed + 1)
    offset, _ = gaussian(size, seed + 2)
    # well-conditioned, so that no precision is lost
    matrix = 10**exponent * (torch.eye(size) + 0.3 * torch.ones(size, size).triu(1)).double()
    moved = gaussian_kl(
        matrix @ m1 + offset, matrix @ s1 @ matrix.T, matrix @ m2 + offset, matrix @ s2 @ matrix.T
    )
    torch.testing.assert_close(moved, gaussian_kl(m1, s1, m2, s2), rtol=1e-6, atol=1e-8)


def test_the_directions_differ() -> None:
    first = (torch.zeros(1), torch.eye(1))
    second = (torch.zeros(1), 4 * torch.eye(1))
    log_two = torch.log(torch.tensor(2.0)).item()
    assert gaussian_kl(*first, *second).item() == pytest.approx(log_two - 3 / 8)
    assert gaussian_kl(*second, *first).item() == pytest.approx(3 / 2 - log_two)


@pytest.mark.parametrize("error", [0.0, 1e-17, -1e-17, -1e-13])
def test_a_covariance_that_is_singular_up_to_rounding_gets_a_ridge(error: float) -> None:
    singular = torch.tensor([[1.0, 1.0], [1.0, 1.0 + error]], dtype=torch.float64)
    divergence = gaussian_kl(torch.zeros(2), singular, torch.zeros(2), torch.eye(2))
    assert 5 < divergence < 30  # half the log of the ridge, not infinite


ZERO = torch.zeros(2)
UNIT = torch.eye(2)
BAD_COVARIANCES = [
    (torch.diag(torch.tensor([1.0, -0.5])), "lowest eigenvalue is -0.5"),
    (torch.tensor([[1.0, 2.0], [2.0, 1.0]]), "lowest eigenvalue is -1"),
    (torch.zeros(2, 2), "mean variance is 0"),
    (-UNIT, "mean variance is -1"),
    (torch.tensor([[1.0, 0.5], [0.0, 1.0]]), "symmetric"),
    (torch.tensor([[1.0, torch.nan], [torch.nan, 1.0]]), "finite"),
    (torch.diag(torch.tensor([torch.inf, 1.0])), "finite"),
    (torch.eye(3), "shape (2, 2), not (3, 3)"),
    (torch.ones(2), "shape (2, 2), not (2,)"),
]


@pytest.mark.parametrize(("covariance", "message"), BAD_COVARIANCES)
def test_an_invalid_covariance_is_refused_by_name(covariance: Tensor, message: str) -> None:
    with pytest.raises(ValueError, match=f"cov1.*{re.escape(message)}"):
        gaussian_kl(ZERO, covariance, ZERO, UNIT)
    with pytest.raises(ValueError, match=f"cov2.*{re.escape(message)}"):
        gaussian_kl(ZERO, UNIT, ZERO, covariance)


@pytest.mark.parametrize(
    ("mean", "message"),
    [
        (torch.tensor([0.0, torch.nan]), "mean2 must be finite"),
        (torch.zeros(2, 1), "mean2 must have shape (d,), not (2, 1)"),
        (torch.zeros(0), "mean2 must have shape (d,), not (0,)"),
        (torch.zeros(3), "mean1 has 2 dimensions, mean2 has 3"),
    ],
)
def test_a_mean_that_does_not_fit_is_refused_by_name(mean: Tensor, message: str) -> None:
    with pytest.raises(ValueError, match=re.escape(message)):
        gaussian_kl(ZERO, UNIT, mean, UNIT)
