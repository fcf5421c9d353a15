"""Checks of logits, and their evaluation in chunks, so that memory stays bounded."""

from collections.abc import Callable
from functools import cache

import torch
from torch import Tensor

from dpn_plugin.errors import UserTypeError

Sums = Callable[[Tensor], tuple[Tensor, ...]]
Finish = Callable[..., tuple[Tensor, ...]]

#: elements per chunk; the temporaries of one chunk fit into the processor's cache
CHUNK = 1 << 16
#: a compiled function keeps its temporaries in registers and gains from longer loops
COMPILED_CHUNK = 1 << 17


def check_logits(logits: Tensor, name: str = "logits") -> None:
    """
    Check that logits are a floating point tensor of finite values, at least two classes wide.

    :param logits: the tensor to check
    :param name: the name of the argument in error messages
    :raises UserTypeError: if it is not a floating point tensor
    :raises ValueError: if the shape is neither B x K nor B x K x H x W, K is below 2, or a value is
        not finite
    """
    if not isinstance(logits, Tensor):
        raise UserTypeError(f"{name} must be a torch.Tensor, not {type(logits).__name__}.")
    if not logits.is_floating_point():
        raise UserTypeError(f"{name} must be floating point, not {logits.dtype}.")
    if logits.dim() not in (2, 4):
        shape = tuple(logits.shape)
        raise ValueError(f"{name} must have shape (B, K) or (B, K, H, W), not {shape}.")
    if logits.shape[1] < 2:
        raise ValueError(f"{name} must have at least 2 classes, not {logits.shape[1]}.")
    # a graph cannot branch on values; callers of exported and compiled code check them
    if not torch.compiler.is_compiling():
        _check_finite(logits, name)


def computed_dtype(dtype: torch.dtype) -> torch.dtype:
    """Return float64 for float64, else float32: half precision cannot hold the results."""
    return torch.float64 if dtype == torch.float64 else torch.float32


def by_class(sums: Sums, finish: Finish, logits: Tensor, compile: bool = False) -> list[Tensor]:
    """
    Evaluate a function of sums over the classes, chunk by chunk.

    The results have the shape :math:`B` or :math:`B \\times H \\times W`.

    :param sums: takes logits of shape :math:`K \\times n`, classes first so that the sums run along
        whole vectors; returns tensors of shape :math:`n`
    :param finish: takes :math:`K` and these tensors; returns the results
    :param logits: shape :math:`B \\times K` or :math:`B \\times K \\times H \\times W`
    :param compile: whether to run both through :func:`torch.compile`
    """
    check_logits(logits)
    classes = logits.shape[1]
    rows = logits.movedim(1, -1)
    shape = rows.shape[:-1]
    rows = rows.reshape(-1, classes)
    if compile:
        sums, finish = _compiled(sums), _compiled(finish)
    dtype = computed_dtype(logits.dtype)
    if torch.compiler.is_compiling():
        # the number of chunks would be frozen into the graph, and with it the size of the batch
        values = finish(classes, *sums(rows.T.to(dtype).contiguous()))
        return [each.reshape(shape) for each in values]
    chunk = COMPILED_CHUNK if compile else CHUNK
    step = max(1, chunk // classes)
    ends = []
    # finish is cheap per sample but has many operations: longer vectors share their overhead
    for block in rows.split(chunk):
        parts = [sums(each.T.to(dtype).contiguous()) for each in block.split(step)]
        ends.append(finish(classes, *_joined(parts)))
    return [values.reshape(shape) for values in _joined(ends)]


def _joined(parts: list[tuple[Tensor, ...]]) -> list[Tensor]:
    if len(parts) == 1:  # avoid a copy
        return list(parts[0])
    return [torch.cat(values) for values in zip(*parts, strict=True)]


@cache
def _compiled(function: Callable) -> Callable:
    # keep intermediate values in registers instead of writing them to memory
    options: dict[str, str | int | bool | Callable] = {
        "realize_opcount_threshold": 1000,
        "realize_reads_threshold": 1000,
    }
    return torch.compile(function, options=options)


def _check_finite(logits: Tensor, name: str) -> None:
    if logits.numel() == 0:
        return
    low, high = torch.aminmax(logits.detach())
    if not (torch.isfinite(low) and torch.isfinite(high)):
        bad = int((~torch.isfinite(logits)).sum())
        raise ValueError(
            f"{name} must be finite; {bad} of {logits.numel()} values are NaN or infinite."
        )
