"""Files that appear whole or not at all, and the hash that shows whether they stayed so."""

import fcntl
import glob
import hashlib
import os
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from dpn_plugin.errors import CannotWrite

__all__ = ["cannot_write", "file_hash", "replacing", "sync", "write_text"]


@contextmanager
def replacing(path: str | Path) -> Iterator[Path]:
    """
    Give a temporary path beside ``path``; move it into place when the block ends well.

    The data reaches the disk before the name does, so a reader sees the old file or the new one,
    also after a power cut. When the block raises, the old file stays and the temporary one goes.
    That of a killed process goes when ``path`` is written again.

    :param path: the file to write
    :raises CannotWrite: if the disk is full or the folder cannot be written
    """
    path = Path(path)
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        _remove_dead(path)
        handle, temporary = _living(path)
    except OSError as error:
        raise cannot_write(path, error) from error
    try:
        yield temporary
        sync(temporary)
        # mkstemp makes the file private; the result gets the permissions of an ordinary file
        temporary.chmod(0o666 & ~_umask())
        temporary.replace(path)
        sync(path.parent)
    except OSError as error:
        raise cannot_write(path, error) from error
    finally:
        os.close(handle)
        temporary.unlink(missing_ok=True)


def write_text(path: str | Path, text: str) -> None:
    """
    :param path: the file to write
    :param text: its whole content, written as UTF-8
    """
    with replacing(path) as temporary:
        temporary.write_text(text, encoding="utf-8")


def file_hash(path: Path) -> str:
    """:return: SHA-256 of a file, in hexadecimal; it is read piece by piece"""
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def sync(path: Path) -> None:
    """Wait until a file, or the names in a folder, are on the disk."""
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def _living(path: Path) -> tuple[int, Path]:
    """:return: a temporary file, locked: the system takes the lock from a process that dies"""
    while True:
        handle, name = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}.", suffix=".tmp")
        with suppress(OSError):  # a file system without locks: its leftovers stay
            fcntl.flock(handle, fcntl.LOCK_EX)
        if os.fstat(handle).st_nlink:
            return handle, Path(name)
        os.close(handle)  # it was taken for a dead one's before it was locked


def _remove_dead(path: Path) -> None:
    for left in path.parent.glob(f".{glob.escape(path.name)}.*.tmp"):
        with suppress(OSError), left.open("rb+") as file:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
            left.unlink()


def _umask() -> int:
    mask = os.umask(0)
    os.umask(mask)
    return mask


def cannot_write(path: Path, error: Exception) -> CannotWrite:
    """:return: the sentence for a full disk or a folder that cannot be written"""
    # torch raises an error of its own on top of the system's
    first = error.__context__ if isinstance(error.__context__, OSError) else error
    reason = getattr(first, "strerror", None) or str(first)
    return CannotWrite(f"Cannot write {path}: {reason}. What was there before is unchanged.")
