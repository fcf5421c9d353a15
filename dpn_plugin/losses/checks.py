"""The arguments of the losses, checked where they enter."""

import math
from collections.abc import Iterable
from numbers import Real

import torch
from torch import Tensor

from dpn_plugin.errors import UserError, choices

__all__ = ["check_choice", "check_integer", "check_number", "check_target"]


def check_choice(name: str, value: str, allowed: Iterable[str]) -> None:
    """
    :raises UserError: if ``value`` is not one of the allowed words
    """
    if value not in allowed:
        raise UserError(f"{name} must be {choices(allowed)}, not {value!r}.")


def check_number(name: str, value: float, *, above: float | None = None) -> float:
    """
    :param above: the bound that the number must exceed, if there is one
    :return: the value as a float
    :raises TypeError: if it is not a number
    :raises UserError: if it is not finite or not above the bound
    """
    if not isinstance(value, Real) or isinstance(value, bool):
        raise TypeError(f"{name} must be a number, not {type(value).__name__}.")
    if not math.isfinite(value) or (above is not None and value <= above):
        bound = "" if above is None else f" above {above:g}"
        raise UserError(f"{name} must be a finite number{bound}, not {value}.")
    return float(value)


def check_integer(name: str, value: int, *, least: int) -> int:
    """
    :param least: the smallest value allowed
    :return: the value
    :raises TypeError: if it is not an integer
    :raises UserError: if it is below ``least``
    """
    if not isinstance(value, int) or isinstance(value, bool):
        raise TypeError(f"{name} must be an integer, not {type(value).__name__}.")
    if value < least:
        raise UserError(f"{name} must be at least {least}, not {value}.")
    return value


def check_target(target: Tensor, logits: Tensor) -> None:
    """
    :param target: the labels that belong to ``logits``; below zero means OOD
    :param logits: shape :math:`B \\times K` or :math:`B \\times K \\times H \\times W`
    :raises TypeError: if the target is not a tensor of integers
    :raises UserError: if its shape does not fit or a label is :math:`K` or more
    """
    if not isinstance(target, Tensor):
        raise TypeError(f"target must be a torch.Tensor, not {type(target).__name__}.")
    if target.is_floating_point() or target.is_complex() or target.dtype == torch.bool:
        raise TypeError(f"target must hold integers, not {target.dtype}.")
    expected = logits.shape[:1] + logits.shape[2:]
    if target.shape != expected:
        raise UserError(
            f"target must have shape {tuple(expected)} for logits of shape "
            f"{tuple(logits.shape)}, not {tuple(target.shape)}."
        )
    # a graph cannot branch on values: compiled code is checked by its caller
    if not torch.compiler.is_compiling() and target.numel():
        _check_labels(int(target.max()), logits.shape[1])


def _check_labels(largest: int, classes: int) -> None:
    if largest >= classes:
        raise UserError(
            f"target holds {largest}, but the logits have {classes} classes: allowed are "
            f"0 to {classes - 1}, and any value below 0 for OOD."
        )
