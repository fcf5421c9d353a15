"""The continuation of the exponential beyond what a number can hold."""

import pytest
import torch

from dpn_plugin.losses.extremes import softened


def test_identity_inside_the_bound():
    z = torch.linspace(-60, 60, 241)
    assert torch.equal(softened(z), z)


@pytest.mark.parametrize("z", [60.5, 75.0, 1e3])
def test_the_concentration_follows_the_tangent_and_its_reciprocal(z):
    tangent = torch.tensor(60.0).double().exp() * (1 + z - 60)
    both = softened(torch.tensor([z, -z], dtype=torch.float64)).exp()
    torch.testing.assert_close(both, torch.stack([tangent, 1 / tangent]))


def test_slope_is_continuous_and_never_zero():
    z = torch.tensor([59.9, 60, 60.001, 1e4, -60, -60.001, -1e4, 0], requires_grad=True)
    softened(z).sum().backward()
    expected = torch.tensor([1, 1, 1 / 1.001, 1 / 9941, 1, 1 / 1.001, 1 / 9941, 1])
    torch.testing.assert_close(z.grad, expected, rtol=1e-4, atol=0)
