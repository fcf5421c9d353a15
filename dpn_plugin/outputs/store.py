"""A folder of outputs, each stored once under a hash of everything that it depends on."""

import logging
import re
from collections.abc import Iterable, Iterator, Mapping
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from tokenize import TokenError
from typing import IO
from zipfile import BadZipFile

import numpy as np
import torch
from torch import Tensor

from dpn_plugin._files import (
    creating_folder,
    file_hash,
    read_record,
    remove_folder,
    write_record,
)
from dpn_plugin.errors import CannotWrite, UserError
from dpn_plugin.outputs.key import ARRAY_NAME, ArrayRecord, EntryRecord, OutputKey

_log = logging.getLogger(__name__)
_ENTRY = "entry.json"
_HASH = re.compile(r"[0-9a-f]{64}")

#: What numpy raises for a damaged file: it parses the header as Python, and a file that starts
#: like a zip archive as one.
_DAMAGE = (
    ValueError,
    KeyError,
    TypeError,
    AttributeError,
    EOFError,
    MemoryError,
    RecursionError,
    SyntaxError,
    BadZipFile,
    TokenError,
)

#: Hashes that this process has computed, by what identifies one state of a file.
_hashes: dict[tuple[int, ...], str] = {}


@dataclass(frozen=True)
class StoredOutputs:
    """
    One entry of the store.

    :param key: what it depends on
    :param arrays: by name, e.g. ``logits``, ``features``, ``labels``: memory-mapped, read-only,
        all with one row per sample
    """

    key: OutputKey
    arrays: Mapping[str, np.ndarray]


class OutputStore:
    """
    A folder of entries. An entry is a folder named by the hash of its key, with one ``.npy`` file
    per array and ``entry.json``.

    :param root: the folder; created by the first write
    """

    def __init__(self, root: str | Path) -> None:
        self.root = Path(root)

    def open(self, key_hash: str) -> StoredOutputs | None:
        """
        Return an entry, or ``None`` if there is none.

        Every file is compared with its hash, once per process unless it changes. A damaged entry
        is logged and removed, so that it is computed again.

        :param key_hash: :attr:`OutputKey.hash`
        """
        folder = self._folder(key_hash)
        if not folder.is_dir():
            return None
        try:
            return _read_entry(folder)
        except _DAMAGE as damage:
            _log.warning("Stored outputs are damaged and will be computed again: %s", damage)
            remove_folder(folder)
            return None
        except OSError as error:
            reason = error.strerror or str(error)
            raise CannotWrite(f"Cannot use stored outputs in {self.root}: {reason}.") from error

    def write(self, key: OutputKey, batches: Iterable[Mapping[str, Tensor]]) -> StoredOutputs:
        """
        Store outputs and return the entry.

        Nothing is visible before everything is on the disk. An entry that already exists, or that
        another process finishes first, stays.

        :param key: what the outputs depend on
        :param batches: named tensors, with the same names and row shapes in every batch and one
            number of rows within a batch; taken one at a time
        :raises UserError: if there are no samples, names or shapes vary, or the disk is full
        """
        folder = self._folder(key.hash)
        try:
            with creating_folder(folder) as temporary:
                _write_arrays(temporary, _pass_on(batches))
                _write_entry(temporary, key)
                self.open(key.hash)  # a damaged entry would stay otherwise
        except _DataError as error:
            raise error.error from None
        stored = self.open(key.hash)
        if stored is None:
            raise UserError(f"{folder} was damaged as soon as it was written. Check the disk.")
        return stored

    def _folder(self, key_hash: str) -> Path:
        if not _HASH.fullmatch(key_hash):
            raise UserError(f"key must be 64 hexadecimal digits, got {key_hash!r}.")
        return self.root / key_hash


class _DataError(Exception):
    """Carries an error of the data out of a block that reports system errors as its own."""

    def __init__(self, error: OSError) -> None:
        super().__init__(error)
        self.error = error


def _pass_on(batches: Iterable[Mapping[str, Tensor]]) -> Iterator[Mapping[str, Tensor]]:
    try:
        # not with "yield from", which would close the batches when storing them fails
        for batch in batches:  # noqa: UP028
            yield batch
    except OSError as error:
        raise _DataError(error) from error


class _RowWriter:
    """
    Appends rows to a ``.npy`` file, so that memory does not grow with the number of rows.

    Not :func:`numpy.lib.format.open_memmap`: writing to a memory map on a full disk ends the
    process with SIGBUS instead of an error.

    :param path: the file to create; its name without suffix is used in messages
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        self.rows = 0
        self.row: tuple[tuple[int, ...], np.dtype] | None = None
        self._file: IO[bytes] = path.open("wb")

    def append(self, batch: Tensor) -> None:
        array = _as_numpy(batch)
        row = (array.shape[1:], array.dtype)
        if self.row is None:
            self.row = row
            self._write_header()
        if row != self.row:
            raise UserError(f"{self.path.stem}: rows of {row} follow rows of {self.row}.")
        self._file.write(array.data)
        self.rows += len(array)

    def close(self) -> None:
        """Write the final number of rows into the header."""
        with self._file:
            if self.row is not None:
                self._file.seek(0)
                self._write_header()

    def _write_header(self) -> None:
        # numpy pads the header for a growing first axis, so its length does not change
        assert self.row is not None
        shape, dtype = self.row
        descr = np.lib.format.dtype_to_descr(dtype)
        header = {"descr": descr, "fortran_order": False, "shape": (self.rows, *shape)}
        np.lib.format.write_array_header_1_0(self._file, header)


def _as_numpy(batch: Tensor) -> np.ndarray:
    batch = batch.detach().cpu()
    # numpy has no bfloat16; float32 holds every value of it
    batch = batch.float() if batch.dtype == torch.bfloat16 else batch
    return np.ascontiguousarray(batch.numpy())


def _write_arrays(folder: Path, batches: Iterable[Mapping[str, Tensor]]) -> None:
    writers: dict[str, _RowWriter] = {}
    with ExitStack() as stack:
        for batch in batches:
            if not writers:
                for name in batch:
                    writers[name] = _RowWriter(_array_path(folder, name))
                    stack.callback(writers[name].close)
            _check_batch(batch, writers)
            for name, tensor in batch.items():
                writers[name].append(tensor)
    if not any(writer.rows for writer in writers.values()):
        raise UserError("There are no samples to store: the data set is empty.")


def _check_batch(batch: Mapping[str, Tensor], writers: Mapping[str, _RowWriter]) -> None:
    if batch.keys() != writers.keys():
        raise UserError(f"A batch with {sorted(batch)} follows batches with {sorted(writers)}.")
    sizes = {name: len(tensor) for name, tensor in batch.items()}
    if len(set(sizes.values())) > 1:
        raise UserError(f"All outputs of a batch must have the same number of rows, got {sizes}.")
    for name, tensor in batch.items():
        if tensor[:1].numel() == 0 and len(tensor):
            raise UserError(f"{name}: rows of shape {tuple(tensor.shape[1:])} are empty.")


def _write_entry(folder: Path, key: OutputKey) -> None:
    arrays = {}
    for path in sorted(folder.glob("*.npy")):
        array = np.load(path, mmap_mode="r", allow_pickle=False)
        arrays[path.stem] = _describe(array, _cached_hash(path))
    write_record(folder / _ENTRY, EntryRecord(key=key, arrays=arrays))


def _read_entry(folder: Path) -> StoredOutputs:
    try:
        entry = read_record(folder / _ENTRY, EntryRecord)
    except FileNotFoundError:
        raise ValueError(f"{folder / _ENTRY} is missing") from None
    if entry.key.hash != folder.name:
        raise ValueError(f"{folder / _ENTRY} belongs to another key")
    arrays = {name: _read_array(folder, name, array) for name, array in entry.arrays.items()}
    return StoredOutputs(entry.key, arrays)


def _read_array(folder: Path, name: str, expected: ArrayRecord) -> np.ndarray:
    path = _array_path(folder, name)
    try:
        if _cached_hash(path) != expected.sha256:
            raise ValueError("the content does not match its hash")
        array = np.load(path, mmap_mode="r", allow_pickle=False)
        if _describe(array, expected.sha256) != expected:
            raise ValueError(f"{_ENTRY} records another shape or type")
    except (FileNotFoundError, *_DAMAGE) as error:
        raise ValueError(f"{path}: {error}") from error
    return array


def _array_path(folder: Path, name: str) -> Path:
    if not ARRAY_NAME.fullmatch(name):
        raise UserError(f"{name!r} cannot name an array: use a-z, 0-9 and _, and start with a-z.")
    return folder / f"{name}.npy"


def _describe(array: np.ndarray, sha256: str) -> ArrayRecord:
    return ArrayRecord(shape=list(array.shape), dtype=array.dtype.str, sha256=sha256)


def _cached_hash(path: Path) -> str:
    stat = path.stat()
    state = stat.st_dev, stat.st_ino, stat.st_size, stat.st_mtime_ns
    if state not in _hashes:
        _hashes[state] = file_hash(path)
    return _hashes[state]
