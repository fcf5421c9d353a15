"""What every mixing has in common: its result, its random numbers, the check of its options."""

import math
from typing import NamedTuple, Protocol

import numpy as np
import torch
from torch import Tensor

from dpn_plugin.errors import UserError


class Mixed(NamedTuple):
    """
    A batch after mixing.

    :param inputs: of the same shape and type as before
    :param soft: the targets of all samples as probabilities, B x K, if labels do not suffice
    """

    inputs: Tensor
    soft: Tensor | None = None


class Mixing(Protocol):
    """Mixes the samples of a batch; the same state of the generator gives the same mixtures."""

    def __call__(
        self, inputs: Tensor, labels: Tensor, num_classes: int, generator: torch.Generator
    ) -> Mixed:
        """Return the batch after mixing."""

    def why_not(self, kind: str) -> str | None:
        """Return why samples of a kind cannot be mixed, ``None`` if they can."""


def numpy_generator(generator: torch.Generator) -> np.random.Generator:
    """Return a generator of NumPy, which has the beta distribution, that follows from torch's."""
    seed = torch.randint(2**62, (1,), generator=generator, device=generator.device)
    return np.random.default_rng(int(seed))


def check_positive(name: str, value: float) -> None:
    """Raise a :class:`UserError` if an option is not a finite number above 0."""
    number = isinstance(value, int | float) and not isinstance(value, bool)
    if not (number and math.isfinite(value) and value > 0):
        raise UserError(f"{name} must be a finite number above 0, not {value!r}.")


def check_count(name: str, value: int) -> None:
    """Raise a :class:`UserError` if an option is not a whole number above 0."""
    if isinstance(value, bool) or not isinstance(value, int) or value < 1:
        raise UserError(f"{name} must be a whole number of 1 or more, not {value!r}.")
