"""Files and folders that appear whole or not at all, locks and hashes."""

import hashlib
import os
import secrets
import shutil
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path

from filelock import FileLock, Timeout

from dpn_plugin.errors import CannotWrite, UserError

_TEMPORARY = ".tmp"
_LOCK = ".lock"


@contextmanager
def replacing(path: str | Path) -> Iterator[Path]:
    """
    Give a temporary path beside ``path`` and move the file into place when the block ends.

    The data reaches the disk before the name does, so a reader sees the old file or the new one,
    also after a power cut. When the block raises, the old file stays.

    :param path: the file to write; its folder is created
    :raises CannotWrite: if the disk is full or the folder cannot be written
    """
    path = Path(path)
    with write_errors(path), _temporary_path(path) as temporary:
        yield temporary
        _sync(temporary)
        temporary.replace(path)
        _sync(path.parent)


@dataclass
class NewFile:
    """
    A file that is being written.

    :param path: where to write
    :param name: of the file once it is whole; it stays nameless, and is removed, without one
    """

    path: Path
    name: str = ""


@contextmanager
def writing_into(folder: Path) -> Iterator[NewFile]:
    """
    Give a temporary path in ``folder``, for a file whose name is known when it is written.

    When the block ends, the file gets its name, after its data has reached the disk.

    :param folder: is created
    :raises CannotWrite: if the disk is full or the folder cannot be written
    """
    with write_errors(folder), _temporary_path(folder / "new") as temporary:
        file = NewFile(temporary)
        yield file
        if file.name:
            _sync(temporary)
            temporary.replace(folder / file.name)
            _sync(folder)


@contextmanager
def creating_folder(path: Path, *, replace: bool = False) -> Iterator[Path]:
    """
    Give an empty temporary folder and move it into place when the block ends.

    Nothing is visible before all files are on the disk. If another process has created the folder
    in the meantime, that one stays.

    :param path: the folder to create, with its parents
    :param replace: remove a folder that is already there
    :raises CannotWrite: if the disk is full or the folder cannot be written
    """
    with write_errors(path), _temporary_path(path) as temporary:
        temporary.mkdir()
        yield temporary
        if replace and path.is_dir():
            remove_folder(path)
        move_into_place(temporary, path)


def move_into_place(folder: Path, path: Path) -> None:
    """
    Give a folder its final name, when all of its files are on the disk.

    :param folder: it stays where it is if another process has created ``path`` in the meantime
    :param path: the final name, in a folder that exists
    """
    for each in (*folder.rglob("*"), folder):
        _sync(each)
    try:
        folder.rename(path)
    except OSError:
        if not path.is_dir():
            raise
    _sync(path.parent)


def remove_folder(path: Path) -> None:
    """Remove a folder so that no reader sees a part of it."""
    # another process may have removed it first
    with _temporary_path(path) as trash, suppress(FileNotFoundError):
        path.rename(trash)


def remove_abandoned(folder: Path, *, recursive: bool = False) -> None:
    """Remove temporary files and folders of processes that were killed."""
    names = folder.rglob if recursive else folder.glob
    paths = [*names(f".*{_TEMPORARY}"), *names(f".*{_TEMPORARY}{_LOCK}")]
    for temporary in {path.with_name(path.name.removesuffix(_LOCK)) for path in paths}:
        # a process that is alive holds the lock; the system releases the lock of one that died
        with suppress(Timeout, OSError), _lock_of(temporary, timeout=0):
            _remove(temporary)


def check_folder(folder: Path, what: str, ignored: Iterable[Path] = ()) -> None:
    """
    Check that a folder without a record of ours holds nothing that could be lost.

    :param folder: the folder to write to; it may not exist
    :param what: what is going to be written, e.g. ``"run"``, for the message
    :param ignored: files that may be there
    :raises UserError: naming what is in it
    """
    known = {path.resolve() for path in ignored}
    try:
        found = sorted(
            path.name
            for path in folder.iterdir()
            if path.resolve() not in known and _holds_files(path)
        )
    except OSError:  # it does not exist; a path that cannot be written is reported when it is
        return
    if found:
        more = f" and {len(found) - 3} more" if len(found) > 3 else ""
        raise UserError(
            f"{folder} is not empty and holds no {what} of dpn-plugin, but "
            f"{', '.join(found[:3])}{more}. Use another folder."
        )


def _holds_files(path: Path) -> bool:
    """Return whether a path is a file that was finished, or a folder with such files."""
    inside = path.rglob("*") if path.is_dir() else [path]
    return any(not (each.is_dir() or each.name.endswith((_TEMPORARY, _LOCK))) for each in inside)


def write_text(path: str | Path, text: str) -> None:
    """
    Write a text file, whole or not at all.

    :param path: the file to write
    :param text: its whole content, written as UTF-8
    """
    with replacing(path) as temporary:
        temporary.write_text(text, encoding="utf-8")


def file_hash(path: Path) -> str:
    """Return the SHA-256 of a file in hexadecimal; the file is read in chunks."""
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


@contextmanager
def locked(path: Path, busy: str | None = None) -> Iterator[None]:
    """
    Hold the lock file ``path``, which is removed at the end of the block together with the folders
    that were created for it and are still empty.

    :param busy: the message if another process holds it; without one, wait
    :raises UserError: with this message
    :raises CannotWrite: if the file cannot be created
    """
    created = [folder for folder in path.parents if not folder.exists()]
    with write_errors(path):
        path.parent.mkdir(parents=True, exist_ok=True)
        lock = FileLock(path, timeout=0 if busy else -1)
        try:
            lock.acquire()
        except Timeout:
            raise UserError(busy) from None
    try:
        yield
    finally:
        path.unlink(missing_ok=True)  # before the release: filelock discards an unlinked file
        lock.release()
        with suppress(OSError):  # only those that stayed empty
            for folder in created:
                folder.rmdir()


def cannot_write(path: Path, error: Exception) -> CannotWrite:
    """Return the error for a full disk or a folder that cannot be written."""
    # torch raises an error of its own on top of the system's
    first = error.__context__ if isinstance(error.__context__, OSError) else error
    reason = getattr(first, "strerror", None) or str(first)
    return CannotWrite(f"Cannot write {path}: {reason}. What was there before is unchanged.")


@contextmanager
def write_errors(path: Path) -> Iterator[None]:
    """
    Within the block, report errors of the system as failures to write ``path``.

    :raises CannotWrite: instead of an OSError
    """
    try:
        yield
    except OSError as error:
        raise cannot_write(path, error) from error


@contextmanager
def _temporary_path(path: Path) -> Iterator[Path]:
    """Give an unused hidden path beside ``path``; what is there when the block ends is removed."""
    path.parent.mkdir(parents=True, exist_ok=True)
    remove_abandoned(path.parent)
    temporary = path.with_name(f".{path.name}.{secrets.token_hex(4)}{_TEMPORARY}")
    with _lock_of(temporary):
        try:
            yield temporary
        finally:
            _remove(temporary)


@contextmanager
def _lock_of(temporary: Path, timeout: float = -1) -> Iterator[None]:
    """Hold the lock that shows that the owner of a temporary path is alive."""
    path = temporary.with_name(temporary.name + _LOCK)
    with FileLock(path, timeout=timeout):
        try:
            yield
        finally:
            path.unlink(missing_ok=True)


def _remove(path: Path) -> None:
    if path.is_dir() and not path.is_symlink():
        shutil.rmtree(path, ignore_errors=True)
    else:
        path.unlink(missing_ok=True)


def _sync(path: Path) -> None:
    """Wait until a file, or the names in a folder, are on the disk."""
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
