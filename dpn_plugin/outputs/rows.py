"""Named arrays that grow by rows, as ``.npy`` files in a folder."""

import hashlib
import math
import os
from collections.abc import Mapping
from io import FileIO
from os import SEEK_CUR
from pathlib import Path
from types import TracebackType

import numpy as np
import torch
from torch import Tensor

from dpn_plugin.errors import UserError
from dpn_plugin.outputs.key import ARRAY_NAME

#: how much of a file is read at a time
_READ_BYTES = 1 << 20

#: shape and type of one row
Row = tuple[tuple[int, ...], np.dtype]


def array_path(folder: Path, name: str) -> Path:
    """
    Return the file of an array.

    :raises UserError: if the name could lead out of the folder
    """
    if not ARRAY_NAME.fullmatch(name):
        raise UserError(f"{name!r} cannot name an array: use a-z, 0-9 and _, and start with a-z.")
    return folder / f"{name}.npy"


class RowWriter:
    """
    Appends rows to a ``.npy`` file, so that memory does not grow with the number of rows.

    Not :func:`numpy.lib.format.open_memmap`: writing to a memory map on a full disk ends the
    process with SIGBUS instead of an error.

    :param path: the file; its name without suffix is used in messages
    :param row: of a file that is there already, to append to it
    """

    def __init__(self, path: Path, row: Row | None = None) -> None:
        self.path, self.row, self.rows = path, row, 0
        # without a buffer, which would try to write its rest again after the disk was full
        self._file = path.open("w+b" if row is None else "r+b", buffering=0)

    def append(self, batch: Tensor) -> None:
        """
        Append the rows of a batch.

        :raises UserError: if they have another shape or type than those before
        """
        array = _as_numpy(batch)
        row = (array.shape[1:], array.dtype)
        if self.row is None:
            self.row = row
            self._write_header()
        if row != self.row:
            raise UserError(f"{self.path.stem}: rows of {row} follow rows of {self.row}.")
        _write_all(self._file, array)
        self.rows += len(array)

    def hash_rows(self, start: int, count: int) -> str:
        """Return the SHA-256 of consecutive rows, an empty string if there are fewer."""
        self._seek(start)
        found = _hash_of_next(self._file, count * self._row_bytes)
        self._seek(self.rows)
        return found

    def cut(self, rows: int) -> None:
        """Remove all rows but the first ones."""
        if self.row is None or self._file.closed:
            return
        self.rows = rows
        self._seek(rows)
        self._file.truncate()

    def sync(self) -> None:
        """Wait until the rows are on the disk."""
        os.fsync(self._file.fileno())

    def close(self) -> None:
        """Write the final number of rows into the header. A second call does nothing."""
        if self.row is not None and not self._file.closed:
            self._write_header()
        self._file.close()

    def _seek(self, row: int) -> None:
        self._write_header()
        self._file.seek(row * self._row_bytes, SEEK_CUR)

    @property
    def _row_bytes(self) -> int:
        assert self.row is not None
        shape, dtype = self.row
        return math.prod(shape) * dtype.itemsize

    def _write_header(self) -> None:
        # numpy pads the header for a growing first axis, so its length does not change
        assert self.row is not None
        shape, dtype = self.row
        descr = np.lib.format.dtype_to_descr(dtype)
        header = {"descr": descr, "fortran_order": False, "shape": (self.rows, *shape)}
        self._file.seek(0)
        np.lib.format.write_array_header_1_0(self._file, header)


class ArraysWriter:
    """
    Appends batches of named arrays to the files of a folder; a context manager that closes them.

    :param folder: where the files are
    :param rows: shape and type of the rows of files that are there already, by name
    """

    def __init__(self, folder: Path, rows: Mapping[str, Row] | None = None) -> None:
        self.folder = folder
        self.writers = {
            name: RowWriter(array_path(folder, name), row) for name, row in (rows or {}).items()
        }

    def __enter__(self) -> "ArraysWriter":
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self.close()

    def close(self) -> None:
        """Write the number of rows into the files and close them."""
        for writer in self.writers.values():
            writer.close()

    @property
    def rows(self) -> int:
        """The number of rows of every array."""
        return max((writer.rows for writer in self.writers.values()), default=0)

    def append(self, batch: Mapping[str, Tensor]) -> None:
        """
        Append a batch.

        :raises UserError: if it has other names or rows than those before
        """
        if not self.writers:
            for name in batch:
                self.writers[name] = RowWriter(array_path(self.folder, name))
        _check_batch(batch, self.writers)
        for name, tensor in batch.items():
            self.writers[name].append(tensor)

    def hash_rows(self, start: int, count: int) -> dict[str, str]:
        """Return the SHA-256 of consecutive rows of every array, by name."""
        return {name: writer.hash_rows(start, count) for name, writer in self.writers.items()}

    def sync(self) -> None:
        """Wait until all rows are on the disk."""
        for writer in self.writers.values():
            writer.sync()

    def cut(self, rows: int) -> None:
        """Remove all rows of every array but the first ones."""
        for writer in self.writers.values():
            writer.cut(rows)


def _as_numpy(batch: Tensor) -> np.ndarray:
    batch = batch.detach().cpu()
    # numpy has no bfloat16; float32 holds every value of it
    batch = batch.float() if batch.dtype == torch.bfloat16 else batch
    return np.ascontiguousarray(batch.numpy())


def _write_all(file: FileIO, array: np.ndarray) -> None:
    rest = array.reshape(-1).view(np.uint8).data
    while rest:  # the system may take a part only
        rest = rest[file.write(rest) :]


def _check_batch(batch: Mapping[str, Tensor], writers: Mapping[str, RowWriter]) -> None:
    if batch.keys() != writers.keys():
        raise UserError(f"A batch with {sorted(batch)} follows batches with {sorted(writers)}.")
    sizes = {name: len(tensor) for name, tensor in batch.items()}
    if len(set(sizes.values())) > 1:
        raise UserError(f"All outputs of a batch must have the same number of rows, got {sizes}.")
    for name, tensor in batch.items():
        if tensor[:1].numel() == 0 and len(tensor):
            raise UserError(f"{name}: rows of shape {tuple(tensor.shape[1:])} are empty.")


def _hash_of_next(file: FileIO, size: int) -> str:
    """Return the SHA-256 of the next bytes of a file, an empty string if there are fewer."""
    digest = hashlib.sha256()
    while size > 0:
        part = file.read(min(size, _READ_BYTES))
        if not part:
            return ""
        digest.update(part)
        size -= len(part)
    return digest.hexdigest()
