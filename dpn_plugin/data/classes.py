"""Which labels a specification keeps."""

import torch
from torch import Tensor

from dpn_plugin.data.spec import ClassRange, SourceSpec
from dpn_plugin.errors import UserError, unknown_name

__all__ = ["class_names", "kept_labels"]


def kept_labels(spec: SourceSpec, labels: Tensor, names: tuple[str, ...]) -> list[int]:
    """
    :param spec: what the user asked for
    :param labels: all labels of the source, ``int64``
    :param names: the source's class names, where it has some
    :return: the labels that stay, in ascending order
    :raises UserError: if a class does not exist
    """
    present = sorted(int(label) for label in torch.unique(labels) if label >= 0)
    if spec.classes is None:
        return present
    if isinstance(spec.classes, ClassRange):
        return _within(spec.classes, present, spec)
    return sorted({_label(member, present, names, spec) for member in spec.classes})


def class_names(kept: list[int], names: tuple[str, ...]) -> tuple[str, ...]:
    """:return: the names of the labels, which are their numbers where the source has no names"""
    return tuple(names[label] if label < len(names) else str(label) for label in kept)


def _within(wanted: ClassRange, present: list[int], spec: SourceSpec) -> list[int]:
    if wanted.stop is not None:
        return [_existing(label, present, spec) for label in range(wanted.start, wanted.stop)]
    rest = [label for label in present if label >= wanted.start]
    return rest or [_existing(wanted.start, present, spec)]


def _label(member: int | str, present: list[int], names: tuple[str, ...], spec: SourceSpec) -> int:
    if isinstance(member, int):
        return _existing(member, present, spec)
    if member in names:
        return _existing(names.index(member), present, spec)
    if not names:
        raise UserError(f"{spec.name} has no class names: give the classes as numbers.")
    raise unknown_name(f"class of {spec.name}:", member, names)


def _existing(label: int, present: list[int], spec: SourceSpec) -> int:
    if label in present:
        return label
    if not present:
        raise UserError(f"{spec.name} has no labels, so no classes can be chosen from it.")
    nearest = min(present, key=lambda other: abs(other - label))
    raise UserError(
        f"{spec.name} has no class {label}: its {len(present)} classes go from {present[0]} to "
        f"{present[-1]}, the nearest is {nearest}."
    )
