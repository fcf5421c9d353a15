"""One entry of the store: a folder of ``.npy`` files and the record of their hashes."""

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from tokenize import TokenError
from zipfile import BadZipFile

import numpy as np

from dpn_plugin._files import file_hash
from dpn_plugin._records import read_record, write_record
from dpn_plugin.outputs.key import ArrayRecord, EntryRecord, OutputKey
from dpn_plugin.outputs.rows import array_path

ENTRY_FILE = "entry.json"

#: What numpy raises for a damaged file: it parses the header as Python, and a file that starts
#: like a zip archive as one.
DAMAGE = (
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


def write_entry(folder: Path, key: OutputKey) -> None:
    """Write the record of the arrays in a folder."""
    arrays = {}
    for path in sorted(folder.glob("*.npy")):
        array = np.load(path, mmap_mode="r", allow_pickle=False)
        arrays[path.stem] = _describe(array, _cached_hash(path))
    write_record(folder / ENTRY_FILE, EntryRecord(key=key, arrays=arrays))


def read_entry(folder: Path, key_hash: str) -> StoredOutputs:
    """
    Return the entry in a folder, all of whose files have been compared with their hashes.

    :param folder: where it is
    :param key_hash: the hash of its key
    :raises ValueError: or another of ``DAMAGE``, if it is not what was written
    """
    try:
        entry = read_record(folder / ENTRY_FILE, EntryRecord)
    except FileNotFoundError:
        raise ValueError(f"{folder / ENTRY_FILE} is missing") from None
    if entry.key.hash != key_hash:
        raise ValueError(f"{folder / ENTRY_FILE} belongs to another key")
    arrays = {name: _read_array(folder, name, array) for name, array in entry.arrays.items()}
    return StoredOutputs(entry.key, arrays)


def _read_array(folder: Path, name: str, expected: ArrayRecord) -> np.ndarray:
    path = array_path(folder, name)
    try:
        if _cached_hash(path) != expected.sha256:
            raise ValueError("the content does not match its hash")
        array = np.load(path, mmap_mode="r", allow_pickle=False)
        if _describe(array, expected.sha256) != expected:
            raise ValueError(f"{ENTRY_FILE} records another shape or type")
    except (FileNotFoundError, *DAMAGE) as error:
        raise ValueError(f"{path}: {error}") from error
    return array


def _describe(array: np.ndarray, sha256: str) -> ArrayRecord:
    return ArrayRecord(shape=list(array.shape), dtype=array.dtype.str, sha256=sha256)


def _cached_hash(path: Path) -> str:
    stat = path.stat()
    state = stat.st_dev, stat.st_ino, stat.st_size, stat.st_mtime_ns
    if state not in _hashes:
        _hashes[state] = file_hash(path)
    return _hashes[state]
