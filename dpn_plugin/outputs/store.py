"""What a model said about a data set, stored once under a hash of all that it depends on."""

import json
import logging
import re
from collections.abc import Iterable, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from dataclasses import asdict, dataclass
from pathlib import Path
from tokenize import TokenError
from typing import Any
from zipfile import BadZipFile

import numpy as np
from torch import Tensor

from dpn_plugin.errors import CannotWrite, UserError
from dpn_plugin.files import file_hash
from dpn_plugin.outputs.ingredients import Ingredients
from dpn_plugin.outputs.npy import NpyWriter
from dpn_plugin.outputs.staging import discard, publish, staging_folder

__all__ = ["OutputStore", "Stored"]

_log = logging.getLogger(__name__)
_ENTRY = "entry.json"
_NAME = re.compile(r"[a-z][a-z0-9_]{0,40}")
_KEY = re.compile(r"[0-9a-f]{64}")

#: What reading a file raises that nobody wrote so: NumPy parses a header as Python, and a file that
#: begins like a zip archive as one.
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

#: Hashes that this process has computed, by what tells one state of a file from another.
_hashes: dict[tuple[int, ...], str] = {}


@dataclass(frozen=True)
class Stored:
    """
    One entry of the store.

    :param ingredients: what it was made of
    :param arrays: by name, e.g. ``logits``, ``features``, ``labels``: memory-mapped, read-only,
        all with one row per sample
    """

    ingredients: Ingredients
    arrays: Mapping[str, np.ndarray]


class _DamagedError(Exception):
    """A file of an entry is not what was written."""


class OutputStore:
    """
    A folder of entries. An entry is a folder named by its key, with one ``.npy`` file per array
    and ``entry.json``: the ingredients and the shape, type and hash of every array.

    :param root: the folder; created by the first write
    """

    def __init__(self, root: str | Path) -> None:
        self.root = Path(root)

    def open(self, key: str) -> Stored | None:
        """
        Every file is compared with its hash, once per process unless it changes. A damaged one is
        reported, removed and counts as missing, so that it is made again.

        :param key: :attr:`Ingredients.key`
        :return: the entry, or ``None`` if there is none
        """
        folder = self._folder(key)
        if not folder.is_dir():
            return None
        with _failure_named(self.root):
            try:
                return _read(folder)
            except _DamagedError as damage:
                _log.warning("Stored outputs are damaged and will be made again: %s", damage)
                discard(folder)
                return None

    def write(self, ingredients: Ingredients, batches: Iterable[Mapping[str, Tensor]]) -> Stored:
        """
        Nothing is visible before everything is on the disk. An entry that is already there, or
        that another writer finishes first, stays.

        :param ingredients: what the entry is made of
        :param batches: named tensors, with the same names and row shapes in every batch and one
            number of rows within a batch; taken one at a time
        :return: the entry
        :raises UserError: if there are no samples, names or shapes vary, or the disk is full
        """
        folder = self._folder(ingredients.key)
        with ExitStack() as stack:
            with _failure_named(self.root):
                staged = stack.enter_context(staging_folder(self.root))
            _write_arrays(staged, batches)
            with _failure_named(self.root):
                _write_entry(staged, ingredients)
                if self.open(ingredients.key) is None:
                    publish(staged, folder)
        stored = self.open(ingredients.key)
        if stored is None:
            raise UserError(f"{folder} was damaged as soon as it was written. Check the disk.")
        return stored

    def _folder(self, key: str) -> Path:
        if not _KEY.fullmatch(key):
            raise UserError(f"key must be 64 hexadecimal digits, got {key!r}.")
        return self.root / key


def _write_arrays(folder: Path, batches: Iterable[Mapping[str, Tensor]]) -> None:
    writers: dict[str, NpyWriter] = {}
    try:
        for batch in batches:
            # not around the loop: a failure to read the data is no failure to write
            with _failure_named(folder.parent):
                _append(writers, batch, folder)
    finally:
        with _failure_named(folder.parent):
            for writer in writers.values():
                writer.close()
    if not any(writer.rows for writer in writers.values()):
        raise UserError("There are no samples to store: the data set is empty.")


def _append(writers: dict[str, NpyWriter], batch: Mapping[str, Tensor], folder: Path) -> None:
    if not writers:
        paths = {name: _array_path(folder, name) for name in batch}
        writers.update({name: NpyWriter(path) for name, path in paths.items()})
    if batch.keys() != writers.keys():
        raise UserError(f"A batch with {sorted(batch)} follows batches with {sorted(writers)}.")
    sizes = {name: len(tensor) for name, tensor in batch.items()}
    if len(set(sizes.values())) > 1:
        raise UserError(f"All outputs of a batch must have the same number of rows, got {sizes}.")
    for name, tensor in batch.items():
        if tensor[:1].numel() == 0 and len(tensor):
            raise UserError(f"{name}: rows of shape {tuple(tensor.shape[1:])} hold nothing.")
        writers[name].append(tensor)


def _write_entry(folder: Path, ingredients: Ingredients) -> None:
    arrays = {}
    for path in sorted(folder.glob("*.npy")):
        array = np.load(path, mmap_mode="r", allow_pickle=False)
        arrays[path.stem] = _description(array) | {"sha256": _hash(path)}
    entry = {"ingredients": asdict(ingredients), "arrays": arrays}
    (folder / _ENTRY).write_text(json.dumps(entry, indent=1, sort_keys=True), encoding="utf-8")


def _read(folder: Path) -> Stored:
    try:
        entry = json.loads((folder / _ENTRY).read_text(encoding="utf-8"))
        ingredients = Ingredients(**entry["ingredients"])
        if ingredients.key != folder.name:
            raise ValueError("its ingredients belong to another key")
        records = dict(entry["arrays"])
        return Stored(ingredients, {n: _read_array(folder, n, r) for n, r in records.items()})
    except (FileNotFoundError, *_DAMAGE) as error:
        raise _DamagedError(f"{folder / _ENTRY}: {error}") from error


def _read_array(folder: Path, name: str, record: Mapping[str, Any]) -> np.ndarray:
    path = _array_path(folder, name)
    try:
        if _hash(path) != record["sha256"]:
            raise ValueError("the content does not match its hash")
        array = np.load(path, mmap_mode="r", allow_pickle=False)
        if _description(array) != {k: record[k] for k in ("shape", "dtype")}:
            raise ValueError(f"{_ENTRY} tells of another shape or type")
    except (FileNotFoundError, *_DAMAGE) as error:
        raise _DamagedError(f"{path}: {error}") from error
    return array


def _array_path(folder: Path, name: str) -> Path:
    if not _NAME.fullmatch(name):
        raise UserError(f"{name!r} cannot name an array: use a-z, 0-9 and _, from a letter on.")
    return folder / f"{name}.npy"


def _description(array: np.ndarray) -> dict[str, Any]:
    return {"shape": list(array.shape), "dtype": array.dtype.str}


def _hash(path: Path) -> str:
    stat = path.stat()
    state = stat.st_dev, stat.st_ino, stat.st_size, stat.st_mtime_ns
    if state not in _hashes:
        _hashes[state] = file_hash(path)
    return _hashes[state]


@contextmanager
def _failure_named(root: Path) -> Iterator[None]:
    try:
        yield
    except OSError as error:
        reason = error.strerror or str(error)
        raise CannotWrite(f"Cannot use stored outputs in {root}: {reason}.") from error
