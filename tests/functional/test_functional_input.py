"""Bad logits are refused with a message that has the name, the value and what is allowed."""

import math
import re

import numpy as np
import pytest
import torch
from exact_dirichlet import MEASURES

from dpn_plugin import functional

FUNCTIONS = [functional.dirichlet_measures, *(getattr(functional, name) for name in MEASURES)]
BAD = [
    (torch.tensor([[0.0, math.nan]]), ValueError, "logits must be finite; 1 of 2 values"),
    (torch.tensor([[math.inf, -math.inf]]), ValueError, "logits must be finite; 2 of 2 values"),
    (torch.zeros(3, 1), ValueError, "logits must have at least 2 classes, not 1"),
    (torch.zeros(3, 0), ValueError, "logits must have at least 2 classes, not 0"),
    (torch.zeros(3), ValueError, "(B, K) or (B, K, H, W), not (3,)"),
    (torch.zeros(3, 4, 5), ValueError, "(B, K) or (B, K, H, W), not (3, 4, 5)"),
    (torch.zeros(3, 4, dtype=torch.int64), TypeError, "floating point, not torch.int64"),
    (torch.zeros(3, 4, dtype=torch.complex64), TypeError, "floating point, not torch.complex64"),
    (np.zeros((3, 4)), TypeError, "logits must be a torch.Tensor, not ndarray"),
    (None, TypeError, "logits must be a torch.Tensor, not NoneType"),
]


@pytest.mark.parametrize("function", FUNCTIONS, ids=lambda function: function.__name__)
@pytest.mark.parametrize(("logits", "error", "message"), BAD)
def test_every_measure_refuses_bad_logits(function, logits, error, message: str) -> None:
    with pytest.raises(error, match=re.escape(message)):
        function(logits)


@pytest.mark.parametrize("name", ["log_p", "log_q"])
def test_the_divergence_names_the_argument(name: str) -> None:
    arguments = {"log_p": torch.zeros(1, 3), "log_q": torch.zeros(1, 3)}
    with pytest.raises(ValueError, match=f"{name} must be finite; 1 of 3"):
        functional.dirichlet_kl(**{**arguments, name: torch.tensor([[0.0, 0.0, math.nan]])})


@pytest.mark.parametrize(
    "other", [torch.zeros(1, 4), torch.zeros(3, 3), torch.zeros(2, 3, 1, 1), torch.zeros(2, 2)]
)
def test_the_divergence_refuses_shapes_that_do_not_fit(other: torch.Tensor) -> None:
    message = re.escape(f"(2, 3) and log_q of shape {tuple(other.shape)}")
    with pytest.raises(ValueError, match=message):
        functional.dirichlet_kl(torch.zeros(2, 3), other)
