"""Checks of the arguments of the losses."""

import math
from collections.abc import Iterable
from numbers import Real

import torch
from torch import Tensor

from dpn_plugin.errors import UserError, UserTypeError, choices


def check_choice(name: str, value: str, allowed: Iterable[str]) -> None:
    """Raise a :class:`UserError` if ``value`` is not one of the allowed words."""
    if value not in allowed:
        raise UserError(f"{name} must be {choices(allowed)}, not {value!r}.")


def check_number(
    name: str, value: float, *, above: float | None = None, least: float | None = None
) -> float:
    """
    Return a finite number as a float.

    :param name: the name of the argument in error messages
    :param value: the number
    :param above: the bound that the number must exceed, if there is one
    :param least: the smallest value allowed, if there is one
    :raises UserTypeError: if it is not a number
    :raises UserError: if it is not finite or not within the bound
    """
    if not isinstance(value, Real) or isinstance(value, bool):
        raise UserTypeError(f"{name} must be a number, not {type(value).__name__}.")
    bound = "" if above is None else f" above {above:g}"
    bound += "" if least is None else f" of {least:g} or more"
    within = (above is None or value > above) and (least is None or value >= least)
    if not (math.isfinite(value) and within):
        raise UserError(f"{name} must be a finite number{bound}, not {value}.")
    return float(value)


def check_integer(name: str, value: int, *, least: int) -> int:
    """
    Return an integer that is not below ``least``.

    :param name: the name of the argument in error messages
    :param value: the integer
    :param least: the smallest value allowed
    :raises UserTypeError: if it is not an integer
    :raises UserError: if it is below ``least``
    """
    if not isinstance(value, int) or isinstance(value, bool):
        raise UserTypeError(f"{name} must be an integer, not {type(value).__name__}.")
    if value < least:
        raise UserError(f"{name} must be at least {least}, not {value}.")
    return value


def check_width(logits: Tensor, num_classes: int | None) -> None:
    """
    Check that logits have one column for each class.

    :param logits: classes in dimension 1
    :param num_classes: the number of classes of the loss; ``None`` allows any
    :raises UserError: if the logits have another number of columns
    """
    if num_classes is not None and logits.shape[1] != num_classes:
        raise UserError(
            f"The logits have {logits.shape[1]} classes (shape {tuple(logits.shape)}), but the "
            f"loss was created with num_classes={num_classes}; both numbers must be the same."
        )


def check_target(target: Tensor, logits: Tensor, num_classes: int | None = None) -> None:
    """
    Check that a target holds one label per sample (or pixel) of the logits.

    :param target: the labels of ``logits``; below zero means OOD
    :param logits: shape :math:`B \\times K` or :math:`B \\times K \\times H \\times W`
    :param num_classes: :math:`K`; that of the logits if ``None``
    :raises UserTypeError: if the target is not a tensor of integers
    :raises UserError: if its shape does not fit or a label is :math:`K` or more
    """
    if not isinstance(target, Tensor):
        raise UserTypeError(f"target must be a torch.Tensor, not {type(target).__name__}.")
    if target.is_floating_point() or target.is_complex() or target.dtype == torch.bool:
        raise UserTypeError(f"target must hold integers, not {target.dtype}.")
    expected = logits.shape[:1] + logits.shape[2:]
    if target.shape != expected:
        raise UserError(
            f"target must have shape {tuple(expected)} for logits of shape "
            f"{tuple(logits.shape)}, not {tuple(target.shape)}."
        )
    # a graph cannot branch on values; callers of compiled code check them
    if not torch.compiler.is_compiling() and target.numel():
        _check_labels(int(target.max()), num_classes or logits.shape[1])


def _check_labels(largest: int, classes: int) -> None:
    if largest >= classes:
        raise UserError(
            f"target holds {largest}, but the logits have {classes} classes: allowed are "
            f"0 to {classes - 1}, and any value below 0 for OOD."
        )
