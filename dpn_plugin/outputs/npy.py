"""``.npy`` files that grow batch by batch."""

from pathlib import Path
from typing import IO

import numpy as np
import torch
from torch import Tensor

from dpn_plugin.errors import UserError

__all__ = ["NpyWriter"]


class NpyWriter:
    """
    Appends rows to a ``.npy`` file without knowing how many will come, so memory stays flat.

    :param path: the file to create; its name without suffix is used in messages
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        self.rows = 0
        self._file: IO[bytes] = path.open("wb")
        self._row: tuple[tuple[int, ...], np.dtype] | None = None

    def append(self, batch: Tensor) -> None:
        """
        :param batch: rows along the first dimension; the first batch decides shape and type
        :raises UserError: if a later batch has rows of another shape or type
        """
        array = _as_numpy(batch)
        row = (array.shape[1:], array.dtype)
        if self._row is None:
            self._row = row
            self._write_header()
        if row != self._row:
            raise UserError(f"{self.path.stem}: rows of {row} follow rows of {self._row}.")
        self._file.write(array.data)
        self.rows += len(array)

    def close(self) -> None:
        """Put the final number of rows into the header."""
        with self._file:
            if self._row is not None:
                self._file.seek(0)
                self._write_header()

    def _write_header(self) -> None:
        # numpy pads the header for a growing first axis: its length is that of any row count
        assert self._row is not None
        shape, dtype = self._row
        header = {
            "descr": np.lib.format.dtype_to_descr(dtype),
            "fortran_order": False,
            "shape": (self.rows, *shape),
        }
        np.lib.format.write_array_header_1_0(self._file, header)


def _as_numpy(batch: Tensor) -> np.ndarray:
    batch = batch.detach().cpu()
    # numpy has no bfloat16; float32 holds every value of it
    batch = batch.float() if batch.dtype == torch.bfloat16 else batch
    return np.ascontiguousarray(batch.numpy())
