"""Logits of every kind that a network can output, within a bound."""

from collections.abc import Callable

import torch
from torch import Tensor


def _anywhere(count: int, classes: int, bound: float) -> Tensor:
    return _uniform((count, classes), bound)


def _one_dominates(count: int, classes: int, bound: float) -> Tensor:
    logits = _uniform((count, 1), bound).repeat(1, classes)
    logits[:, 0] = _uniform((count,), bound)
    return logits


def _all_equal(count: int, classes: int, bound: float) -> Tensor:
    return _uniform((count, 1), bound).repeat(1, classes)


def _close_together(count: int, classes: int, bound: float) -> Tensor:
    spread = 10 ** _uniform((count, 1), 6.0).sub(6).div(2)  # 1e-6 to 1
    noise = torch.randn(count, classes, dtype=torch.float64)
    return (_uniform((count, 1), bound) + spread * noise).clamp(-bound, bound)


def _tiny(count: int, classes: int, bound: float) -> Tensor:
    scale = 10 ** _uniform((count, 1), 6.0).sub(6)  # 1e-12 to 1
    return scale * torch.randn(count, classes, dtype=torch.float64)


def _around_one_to_ten(count: int, classes: int, bound: float) -> Tensor:
    # where the special functions switch from the recurrence to the series
    return 1.2 + _uniform((count, classes), 1.2)


def _uniform(shape: tuple[int, ...], bound: float) -> Tensor:
    return (2 * torch.rand(shape, dtype=torch.float64) - 1) * bound


KINDS: dict[str, Callable[[int, int, float], Tensor]] = {
    "anywhere": _anywhere,
    "one dominates": _one_dominates,
    "all equal": _all_equal,
    "close together": _close_together,
    "tiny": _tiny,
    "around one to ten": _around_one_to_ten,
}


def logits_of(kind: str, count: int, classes: int, bound: float) -> Tensor:
    """Return ``count`` samples of float64 logits within ``bound``, the same at every call."""
    with torch.random.fork_rng():
        torch.manual_seed(classes)
        return KINDS[kind](count, classes, bound)
