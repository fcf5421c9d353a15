"""Which samples of a source a specification keeps."""

import torch
from torch import Tensor

from dpn_plugin.data.spec import ClassRange, SourceSpec
from dpn_plugin.errors import UserError, unknown_name


def kept_labels(spec: SourceSpec, labels: Tensor, names: tuple[str, ...]) -> list[int]:
    """
    Return the labels of the classes that are kept, in ascending order.

    :param spec: the specification of the data
    :param labels: all labels of the source, ``int64``
    :param names: the source's class names, where it has some
    :raises UserError: if a class does not exist
    """
    present = sorted(int(label) for label in torch.unique(labels) if label >= 0)
    if spec.classes is None:
        return present
    if isinstance(spec.classes, ClassRange):
        return _in_range(spec.classes, present, spec)
    return sorted({_label(member, present, names, spec) for member in spec.classes})


def kept_positions(spec: SourceSpec, labels: Tensor, kept: list[int], seed: int) -> Tensor:
    """
    Return the positions of the samples that are kept, in ascending order.

    :param spec: the specification of the data
    :param labels: all labels of the source, ``int64``
    :param kept: the labels that are kept if the specification has classes
    :param seed: selects the random subset of ``spec.limit`` samples
    :raises UserError: if no sample is left
    """
    indices = torch.arange(len(labels))
    if spec.classes is not None:
        indices = indices[torch.isin(labels, torch.tensor(kept))]
    if not len(indices):
        raise UserError(f"{spec.name} has no samples.")
    if spec.limit is None or spec.limit >= len(indices):
        return indices
    order = torch.randperm(len(indices), generator=torch.Generator().manual_seed(seed))
    return indices[order[: spec.limit].sort().values]


def class_names(kept: list[int], names: tuple[str, ...]) -> tuple[str, ...]:
    """Return the names of the labels: their numbers where the source has no names."""
    return tuple(names[label] if label < len(names) else str(label) for label in kept)


def _in_range(wanted: ClassRange, present: list[int], spec: SourceSpec) -> list[int]:
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
