"""The measures in exported and compiled graphs."""

import shutil

import pytest
import torch
from logit_cases import logits_of
from torch import Tensor

from dpn_plugin import functional


class Measured(torch.nn.Module):
    def forward(self, logits: Tensor) -> tuple[Tensor, ...]:
        return tuple(functional.dirichlet_measures(logits))


def test_measures_can_be_exported() -> None:
    example = logits_of("anywhere", 4, 5, bound=20).float()
    exported = torch.export.export(Measured(), (example,)).module()
    logits = example.flip(0) + 1
    for ours, expected in zip(exported(logits), Measured()(logits), strict=True):
        torch.testing.assert_close(ours, expected)


@pytest.mark.slow
@pytest.mark.skipif(shutil.which("g++") is None, reason="torch.compile needs a C++ compiler")
def test_compiled_measures_equal_the_eager_ones() -> None:
    logits = logits_of("anywhere", 1000, 10, bound=30).float()
    compiled = functional.dirichlet_measures(logits, compile=True)
    for ours, expected in zip(compiled, functional.dirichlet_measures(logits), strict=True):
        torch.testing.assert_close(ours, expected, rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("size", [1, 7, 10_000])
def test_an_exported_graph_takes_any_batch(size: int) -> None:
    example = logits_of("anywhere", 4, 10, bound=20).float()
    batch = ({0: torch.export.Dim("batch")},)
    exported = torch.export.export(Measured(), (example,), dynamic_shapes=batch).module()
    logits = logits_of("anywhere", size, 10, bound=30).float()
    for ours, expected in zip(exported(logits), Measured()(logits), strict=True):
        torch.testing.assert_close(ours, expected, rtol=1e-5, atol=1e-7)
