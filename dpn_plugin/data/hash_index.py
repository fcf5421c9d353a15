"""``index``: the hashes of images that were read before, found by the state of their files."""

import hashlib
from hashlib import blake2b
from pathlib import Path

import numpy as np

from dpn_plugin._files import locked, replacing
from dpn_plugin.data.hashes import HASH_SIZE, no_hashes

_MAGIC = b"dpnindex"
_START = len(_MAGIC) + 32
_KEY = np.dtype(f"S{HASH_SIZE}")
_ENTRY = np.dtype([("key", _KEY), ("hash", np.uint8, HASH_SIZE)])


class HashIndex:
    """
    A file of the hashes of images, each found by the state of its file and how it is decoded.

    An image whose file has changed is not found, so nothing in it can be out of date. A damaged
    index counts as empty: the images are read again.

    :param path: the file; it need not exist
    """

    def __init__(self, path: Path) -> None:
        self.path = path

    def find(self, states: list[bytes], decoding: str) -> np.ndarray:
        """
        Return the hash of each image, zeros for those that are not known.

        :param states: see :class:`~dpn_plugin.data.origins.Origin`
        :param decoding: how images are decoded
        """
        found, entries = no_hashes(len(states)), self._read()
        if len(entries):
            wanted = _keys(states, decoding)
            places = np.searchsorted(entries["key"], wanted).clip(max=len(entries) - 1)
            hits = entries["key"][places] == wanted
            found[hits] = entries["hash"][places[hits]]
        return found

    def add(self, states: list[bytes], decoding: str, hashes: np.ndarray) -> None:
        """
        Add the hashes of images, beside what other processes have added in the meantime.

        :param states: of each image; those without one are left out
        :param decoding: how they are decoded
        :param hashes: of each image
        :raises CannotWrite: if the disk is full
        """
        kept = np.array([bool(state) for state in states], bool) & hashes.any(axis=1)
        if not kept.any():
            return
        new = np.empty(int(kept.sum()), _ENTRY)
        new["key"], new["hash"] = _keys(states, decoding)[kept], hashes[kept]
        with locked(self.path.with_name(f".{self.path.name}.lock")):
            every = np.concatenate([new, self._read()])
            _, first = np.unique(every["key"], return_index=True)  # of equal keys, the new one
            content = every[first].tobytes()
            with replacing(self.path) as temporary:
                temporary.write_bytes(_MAGIC + hashlib.sha256(content).digest() + content)

    def _read(self) -> np.ndarray:
        try:
            content = self.path.read_bytes()
        except OSError:
            return np.empty(0, _ENTRY)
        known, entries = content[len(_MAGIC) : _START], memoryview(content)[_START:]
        if not content.startswith(_MAGIC) or hashlib.sha256(entries).digest() != known:
            return np.empty(0, _ENTRY)
        return np.frombuffer(entries, _ENTRY)


def _keys(states: list[bytes], decoding: str) -> np.ndarray:
    suffix = f"\0{decoding}".encode()
    return np.frombuffer(b"".join(_key(state, suffix) for state in states), _KEY)


def _key(state: bytes, suffix: bytes) -> bytes:
    if not state:
        return bytes(HASH_SIZE)  # the key of no entry
    # NumPy ignores zeros at the end of a text
    return blake2b(state + suffix, digest_size=HASH_SIZE - 1).digest() + b"\1"
