"""Where each image of a source comes from, to know an image again without reading it."""

import os
import time
from array import array
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from hashlib import blake2b
from typing import Protocol

import numpy as np

from dpn_plugin.errors import UserError

#: file systems count time in steps: a file as new as this may change again within the same step
_TOO_NEW_NS = 50_000_000


class Origin(Protocol):
    """Tells the state of every image of a source."""

    def states(self, indices: Sequence[int]) -> list[bytes]:
        """
        Return the state of each image, which changes whenever the image may have changed.

        Nothing (``b""``) is returned for an image that is missing, or too new to be sure of.
        """

    def check(self, index: int) -> None:
        """Raise :class:`DataChanged` if an image is not what it was when its state was taken."""


class FileList(Sequence[str]):
    """Many paths in little memory: a list of strings needs several times as much."""

    def __init__(self, paths: Iterable[str]) -> None:
        self._ends, text = array("q", [0]), bytearray()
        for path in paths:
            text += os.fsencode(path)
            self._ends.append(len(text))
        self._text = bytes(text)

    def __len__(self) -> int:
        return len(self._ends) - 1

    def __getitem__(self, index):  # type: ignore[no-untyped-def]
        """Return the path at a position, or a list of those of a slice."""
        if isinstance(index, slice):
            return [self[each] for each in range(*index.indices(len(self)))]
        index = range(len(self))[index]
        return os.fsdecode(self._text[self._ends[index] : self._ends[index + 1]])


class DataChanged(UserError):
    """A file is not what it was when it was read for the first time."""


class FileOrigin:
    """
    One file for each image; its state is its path, its size and the time of its last change.

    :param files: the path of each image
    """

    def __init__(self, files: Sequence[str]) -> None:
        self.files = files
        #: size and time of change of each file, once its state was taken
        self._known = np.full((len(files), 2), -1, np.int64)

    def states(self, indices: Sequence[int]) -> list[bytes]:
        """Return the state of each file, and remember it."""
        states, newest = [], time.time_ns() - _TOO_NEW_NS
        for index in indices:
            path = self.files[index]
            try:
                size, changed = _size_and_time(path)
            except OSError:
                states.append(b"")
                continue
            self._known[index] = size, changed
            text = b"\0".join([os.fsencode(os.path.abspath(path)), b"%d\0%d" % (size, changed)])
            states.append(text if changed < newest else b"")
        return states

    def check(self, index: int) -> None:
        """
        Check that a file has not changed since its state was taken.

        :raises DataChanged: if it has
        """
        known = tuple(self._known[index])
        if known == (-1, -1):
            return
        try:
            now = _size_and_time(self.files[index])
        except OSError:
            now = (-1, -1)
        if now != known:
            raise DataChanged(
                f"{self.files[index]} was {'changed' if now[0] >= 0 else 'removed'} while it was "
                "in use. Start the same command again when the data is complete."
            )


@dataclass(frozen=True)
class ArchiveOrigin:
    """
    Images in common files; all change when one of the files does.

    :param files: the paths of the files
    """

    files: tuple[str, ...]

    def states(self, indices: Sequence[int]) -> list[bytes]:
        """Return the state of the files with the number of each image."""
        digest = blake2b(digest_size=16)
        for path in self.files:
            digest.update(f"{os.path.abspath(path)}\0{_size_and_time(path)}\n".encode())
        return [b"%s\0%d" % (digest.digest(), index) for index in indices]

    def check(self, index: int) -> None:
        """Do nothing: the files stay open while they are in use."""


def _size_and_time(path: str) -> tuple[int, int]:
    found = os.stat(path)
    return found.st_size, found.st_mtime_ns
