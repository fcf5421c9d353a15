"""A data set in memory."""

import hashlib
from collections.abc import Iterator
from dataclasses import dataclass, replace

import numpy as np
import torch
from torch import Tensor

from dpn_plugin.errors import UserError

__all__ = ["Samples", "fingerprint", "row_bytes"]

_CHUNK_BYTES = 1 << 24


@dataclass(frozen=True, eq=False)
class Samples:
    """
    Images or points with their labels. Images stay ``uint8``: a quarter of the memory of floats.

    :param inputs: images, ``uint8`` of shape :math:`N \\times C \\times H \\times W`, or points,
        ``float32`` of shape :math:`N \\times D`
    :param labels: ``int64`` of shape :math:`N`; a label below zero marks an OOD sample
    :param name: what error messages and reports call the data
    :param classes: the name of each label, in order, where names are known
    :raises TypeError: if a tensor has another type
    :raises UserError: if a tensor has another shape
    """

    inputs: Tensor
    labels: Tensor
    name: str
    classes: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        ndim = {torch.uint8: 4, torch.float32: 2}.get(self.inputs.dtype)
        if ndim is None:
            raise TypeError(
                f"inputs of {self.name} must be uint8 images or float32 points, "
                f"not {self.inputs.dtype}."
            )
        if self.labels.dtype != torch.int64:
            raise TypeError(f"labels of {self.name} must be int64, not {self.labels.dtype}.")
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
        """:param indices: ``int64`` positions, in the order wanted"""
        return replace(self, inputs=self.inputs[indices], labels=self.labels[indices])


def fingerprint(samples: Samples) -> str:
    """:return: SHA-256 of the type, shape and bytes of inputs and labels, in hexadecimal"""
    digest = hashlib.sha256()
    for tensor in (samples.inputs, samples.labels):
        digest.update(f"{tensor.dtype} {tuple(tensor.shape)};".encode())
        for chunk in row_bytes(tensor):
            digest.update(chunk.data)
    return digest.hexdigest()


def row_bytes(tensor: Tensor) -> Iterator[np.ndarray]:
    """:return: the rows of ``tensor`` as bytes, a few megabytes (one row at least) at a time"""
    width = max(1, tensor[:1].numel() * tensor.element_size())
    for rows in tensor.split(max(1, _CHUNK_BYTES // width)):
        array = np.ascontiguousarray(rows.detach().cpu().numpy())
        yield array.reshape(len(rows), -1).view(np.uint8)
