"""Points in a memory-mapped array of the store."""

import warnings
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import torch
from torch import Tensor

from dpn_plugin.data import StoredImages
from dpn_plugin.outputs.chunks import release_pages

#: A smaller array may stay in memory whole; of a larger one, this much is read before its pages
#: are given back. Reading them again from the system's cache costs a few microseconds per row.
RELEASE_AFTER = 1 << 27


@dataclass(frozen=True, eq=False)
class MappedPoints(StoredImages):
    """
    A view of some rows of a memory-mapped array, in any order.

    :param array: ``float32``, N x D
    """

    array: np.ndarray | None = None

    dtype = torch.float32
    ndim = 2

    @classmethod
    def of(cls, array: np.ndarray) -> "MappedPoints":
        """Return all rows of an array."""
        return cls(len(array), array.shape[1:], array=array)

    def read(self, positions: Tensor) -> Tensor:
        """Return the rows at these positions of the array, in memory."""
        assert self.array is not None
        found = self._rows.index_select(0, positions)
        if self.array.nbytes > RELEASE_AFTER:
            self._count(found.nbytes)
        return found

    @cached_property
    def _rows(self) -> Tensor:
        with warnings.catch_warnings():
            # torch warns that the array cannot be written to, which nobody does
            warnings.filterwarnings("ignore", message="The given NumPy array is not writable")
            return torch.from_numpy(self.array)

    @cached_property
    def _read_bytes(self) -> list[int]:
        return [0]

    def _count(self, size: int) -> None:
        self._read_bytes[0] += size
        if self._read_bytes[0] > RELEASE_AFTER:
            self._read_bytes[0] = 0
            release_pages(self.array)
