"""Data sets: the part that is held out, the memory that they need."""

import os
from dataclasses import dataclass, replace

import torch
from torch import Tensor

from dpn_plugin.data.inputs import Inputs, rows_of, subset_of
from dpn_plugin.errors import UserError, UserTypeError

#: more samples than any memory holds, whatever their size
MAX_SAMPLES = 10**9


@dataclass(frozen=True, eq=False)
class Samples:
    """
    Images or points with their labels. Images stay ``uint8``: a quarter of the memory of floats.

    Inputs are a tensor, or images that stay in files (see :mod:`dpn_plugin.data.inputs`).
    :meth:`rows` reads those that a batch needs, wherever they are.

    :param inputs: images, ``uint8`` of shape :math:`N \\times C \\times H \\times W`, or points,
        ``float32`` of shape :math:`N \\times D`
    :param labels: ``int64`` of shape :math:`N`; a label below zero marks an OOD sample
    :param name: the name of the data in error messages and reports
    :param classes: the name of each label, in order, where names are known
    :param damaged: how many files could not be read and were left out, if that is allowed
    :raises UserTypeError: if a tensor has another type
    :raises UserError: if a tensor has another shape
    """

    inputs: Inputs
    labels: Tensor
    name: str
    classes: tuple[str, ...] = ()
    damaged: int = 0

    def __post_init__(self) -> None:
        ndim = {torch.uint8: 4, torch.float32: 2}.get(self.inputs.dtype)
        if ndim is None:
            raise UserTypeError(
                f"inputs of {self.name} must be uint8 images or float32 points, "
                f"not {self.inputs.dtype}."
            )
        if self.labels.dtype != torch.int64:
            raise UserTypeError(f"labels of {self.name} must be int64, not {self.labels.dtype}.")
        if self.inputs.ndim != ndim:
            raise UserError(
                f"inputs of {self.name} must be N x C x H x W images or N x D points, "
                f"not of shape {tuple(self.inputs.shape)}."
            )
        if self.labels.shape != self.inputs.shape[:1]:
            raise UserError(
                f"labels of {self.name} must be of shape ({len(self.inputs)},), one for each "
                f"input, not {tuple(self.labels.shape)}."
            )

    def __len__(self) -> int:
        return len(self.inputs)

    def subset(self, indices: Tensor) -> "Samples":
        """
        Return the samples at these positions.

        :param indices: ``int64`` positions, in the order wanted
        """
        inputs = subset_of(self.inputs, indices)
        return replace(self, inputs=inputs, labels=self.labels[indices])

    def rows(self, positions: Tensor) -> Tensor:
        """
        Return the inputs at these positions, in memory.

        :param positions: ``int64``, in the order wanted
        """
        return rows_of(self.inputs, positions)

    def all_rows(self) -> Tensor:
        """Return all inputs in memory: for points, and for sets that are known to be small."""
        return rows_of(self.inputs, torch.arange(len(self)))


def hold_out(samples: Samples, fraction: float, seed: int) -> tuple[Samples, Samples]:
    """
    Split at random, class by class, so that both parts have the classes in the same proportions.

    A class of two samples or more is in both parts.

    :param samples: the data to split
    :param fraction: share of the held-out part, between 0 and 1
    :param seed: the same seed gives the same split
    :return: the remaining samples and those held out, both in the order of ``samples``
    :raises UserError: if the fraction is out of range, or a part would be empty
    """
    if not 0 < fraction < 1:
        raise UserError(f"fraction must be between 0 and 1, not {fraction}.")
    generator = torch.Generator().manual_seed(seed)
    held = torch.zeros(len(samples), dtype=torch.bool)
    for label in torch.unique(samples.labels):
        members = torch.nonzero(samples.labels == label).flatten()
        order = torch.randperm(len(members), generator=generator)
        count = min(max(1, round(fraction * len(members))), len(members) - 1)
        held[members[order[:count]]] = True
    if not held.any():
        raise UserError(f"{samples.name} has too few samples ({len(samples)}) to hold some out.")
    return samples.subset(torch.nonzero(~held)[:, 0]), samples.subset(torch.nonzero(held)[:, 0])


def set_aside(samples: Samples, fraction: float, seed: int) -> tuple[Samples, Samples]:
    """
    Split at random, whatever the classes: all samples are equally likely to be set aside.

    Unlike after :func:`hold_out`, the part is a draw like any other from the data, which is what
    the promise of a calibrated threshold rests on. Only a class that would lose all of its samples
    keeps one of them.

    :param samples: the data to split
    :param fraction: share of the part, between 0 and 1
    :param seed: the same seed gives the same split
    :return: the remaining samples and those set aside, both in the order of ``samples``
    :raises UserError: if the fraction is out of range, or a part would be empty
    """
    if not 0 < fraction < 1:
        raise UserError(f"fraction must be between 0 and 1, not {fraction}.")
    count = max(1, round(fraction * len(samples)))
    order = torch.randperm(len(samples), generator=torch.Generator().manual_seed(seed))
    aside = torch.zeros(len(samples), dtype=torch.bool)
    aside[order[:count]] = True
    for label in torch.unique(samples.labels):
        members = torch.nonzero(samples.labels == label)[:, 0]
        if aside[members].all():
            aside[members[0]] = False
    if not aside.any():
        raise UserError(f"{samples.name} has too few samples ({len(samples)}) to set some aside.")
    return samples.subset(torch.nonzero(~aside)[:, 0]), samples.subset(torch.nonzero(aside)[:, 0])


def check_memory(size: int, what: str) -> None:
    """
    Check that data of a declared size fits into memory, before it is allocated.

    :param size: bytes that are needed
    :param what: the data that needs them, the subject of the message
    :raises UserError: if that is more than the memory of this machine
    """
    if size > physical_memory():
        raise UserError(
            f"{what} declares {size / 2**30:,.0f} GiB of data, more than the memory of this "
            f"machine ({physical_memory() / 2**30:,.0f} GiB)."
        )


def physical_memory() -> int:
    """Return the bytes of memory of this machine."""
    if not hasattr(os, "sysconf"):  # not available on Windows: assume 64 GiB
        return 1 << 36
    return os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
