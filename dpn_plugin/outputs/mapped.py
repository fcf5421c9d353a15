"""Points in an array of the store, memory-mapped or read row by row."""

import os
import warnings
from dataclasses import dataclass
from functools import cached_property
from typing import BinaryIO

import numpy as np
import torch
from torch import Tensor

from dpn_plugin.data import StoredImages

#: A larger array is not mapped but read: around every row that is touched, the system maps 64 KB
#: of the file, and all of it would soon count as memory of this process.
LARGEST_MAP = 1 << 27


@dataclass(frozen=True, eq=False)
class MappedPoints(StoredImages):
    """
    A view of some rows of an array in a file, in any order.

    :param array: ``float32``, N x D, memory-mapped
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
        if not isinstance(self.array, np.memmap) or self.array.nbytes <= LARGEST_MAP:
            return self._rows.index_select(0, positions)
        found = np.empty((len(positions), self.array.shape[1]), np.float32)
        if len(found):
            self._read_runs(positions.numpy(), found.data.cast("B"))
        return torch.from_numpy(found)

    def _read_runs(self, positions: np.ndarray, target: memoryview) -> None:
        """Read rows into ``target``, those that follow each other in the file at once."""
        assert isinstance(self.array, np.memmap)
        width, file = self.array.strides[0], self._file.fileno()
        breaks = np.flatnonzero(np.diff(positions) != 1) + 1
        starts = [0, *breaks.tolist()]
        for start, end in zip(starts, [*starts[1:], len(positions)], strict=True):
            offset = self.array.offset + int(positions[start]) * width
            size = (end - start) * width
            if os.preadv(file, [target[start * width : end * width]], offset) < size:
                raise ValueError(f"{self.array.filename} became shorter while it was read.")

    @cached_property
    def _file(self) -> BinaryIO:
        assert isinstance(self.array, np.memmap)
        assert self.array.filename is not None
        return open(self.array.filename, "rb")

    @cached_property
    def _rows(self) -> Tensor:
        with warnings.catch_warnings():
            # torch warns that the array cannot be written to, which nobody does
            warnings.filterwarnings("ignore", message="The given NumPy array is not writable")
            return torch.from_numpy(self.array)
