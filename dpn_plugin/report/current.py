"""A report that is of the results beside it. Hashes tell, for clocks jump."""

import fcntl
import os
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from dpn_plugin.files import file_hash, write_text
from dpn_plugin.report.write import write_report

__all__ = ["current_report"]

#: in the format of sha256sum
_LIST = "report.sha256"
_PAGE = "report.html"
_SOURCES = ("results.csv", "bench.json", "comparison.csv")


def current_report(folder: Path) -> Path:
    """
    Write the report unless it is there, undamaged, and of these results.

    :param folder: what ``dpn bench`` wrote
    :return: the path of ``report.html``
    :raises UserError: if it cannot be written
    """
    with _one_at_a_time(folder):
        if not _is_current(folder):
            sources = _hashes(folder, _SOURCES)  # before they are read: they may change meanwhile
            write_report(folder)
            listed = {**_hashes(folder, [*_parts(folder), _PAGE]), **sources}
            lines = [f"{digest}  {name}\n" for name, digest in listed.items()]
            write_text(folder / _LIST, "".join(lines))
    return folder / _PAGE


def _is_current(folder: Path) -> bool:
    try:
        lines = (folder / _LIST).read_text("utf-8").splitlines()
        listed = {name: digest for digest, name in (line.split("  ", 1) for line in lines)}
    except (OSError, ValueError):
        return False
    # the sources stand at the end: a list that was cut lacks them
    there = _hashes(folder, _SOURCES)
    return there.keys() <= listed.keys() and listed == _hashes(folder, listed)


def _parts(folder: Path) -> list[str]:
    paths = (path for kind in ("tables", "figures") for path in (folder / kind).glob("*"))
    return sorted(str(path.relative_to(folder)) for path in paths)


def _hashes(folder: Path, names: Iterable[str]) -> dict[str, str]:
    """:return: the hash of each of the files that are there"""
    found = {}
    for name in names:
        with suppress(OSError):
            found[name] = file_hash(folder / name)
    return found


@contextmanager
def _one_at_a_time(folder: Path) -> Iterator[None]:
    # whoever finished its results last looks last, and leaves a report of them
    descriptor = os.open(folder, os.O_RDONLY)
    try:
        with suppress(OSError):  # a file system without locks
            fcntl.flock(descriptor, fcntl.LOCK_EX)
        yield
    finally:
        os.close(descriptor)
