"""Folders that appear whole or not at all."""

import fcntl
import os
import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from dpn_plugin.files import sync

__all__ = ["discard", "publish", "staging_folder"]

_SUFFIX = ".tmp"


@contextmanager
def staging_folder(root: Path) -> Iterator[Path]:
    """
    Give an empty hidden folder below ``root``; :func:`publish` moves it into place. Whatever is
    left of it when the block ends goes.

    :param root: created if need be; what dead writers left in it is removed
    """
    root.mkdir(parents=True, exist_ok=True)
    with _writer(root):
        folder = Path(tempfile.mkdtemp(dir=root, prefix=".", suffix=_SUFFIX))
        try:
            yield folder
        finally:
            shutil.rmtree(folder, ignore_errors=True)


def publish(folder: Path, target: Path) -> None:
    """
    Give a finished folder its name, once its files have reached the disk. When another writer was
    first, that one's folder stays.

    :param folder: from :func:`staging_folder`
    :param target: the final name, beside ``folder``
    """
    for path in (*folder.iterdir(), folder):
        sync(path)
    # mkdtemp makes the folder private; the result gets the permissions of its parent
    folder.chmod(target.parent.stat().st_mode & 0o777)
    try:
        folder.rename(target)
    except OSError:
        if not target.is_dir():
            raise
    sync(target.parent)


def discard(folder: Path) -> None:
    """Remove a folder so that no reader sees half of it."""
    # it is no error if another process was faster
    with staging_folder(folder.parent) as grave, suppress(FileNotFoundError):
        folder.rename(grave / folder.name)


@contextmanager
def _writer(root: Path) -> Iterator[None]:
    # Writers share this lock for as long as they live; the system takes it from the dead. Whoever
    # gets it alone knows that no staging folder in here has an owner.
    descriptor = os.open(root / ".writers", os.O_RDWR | os.O_CREAT, 0o666)
    try:
        with suppress(BlockingIOError):
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
            _remove_stale(root)
        fcntl.flock(descriptor, fcntl.LOCK_SH)
        yield
    finally:
        os.close(descriptor)


def _remove_stale(root: Path) -> None:
    for folder in root.glob(f".*{_SUFFIX}"):
        shutil.rmtree(folder, ignore_errors=True)
