"""Files on their way home from a machine that does not share the output folder."""

import shutil
from collections.abc import Iterator
from pathlib import Path

from dpn_plugin.errors import UserError
from dpn_plugin.files import cannot_write
from dpn_plugin.outputs.staging import discard, publish

__all__ = ["Parcel", "append", "packed"]

_PIECE = 16 * 2**20


def packed(folder: Path, root: Path) -> Iterator[tuple[str, bytes]]:
    """
    :param folder: whose files are sent
    :param root: their names are relative to it
    :return: names with the next piece of the file, in order, so that memory holds one piece
    """
    for path in sorted(folder.rglob("*")):
        # hidden files are locks and what was not finished
        if path.is_file() and not any(part.startswith(".") for part in path.parts[-2:]):
            with path.open("rb") as file:
                piece = file.read(_PIECE)
                while True:
                    yield path.relative_to(root).as_posix(), piece
                    if not (piece := file.read(_PIECE)):
                        break


def append(root: Path, name: str, piece: bytes) -> None:
    """
    :param root: where the file belongs
    :param name: from :func:`packed`
    :param piece: the next of the file
    :raises UserError: if the name leads out of the folder, or the disk is full
    """
    path = root / name
    if not path.resolve().is_relative_to(root.resolve()):
        raise UserError(f"A file was sent for {name}, which is outside of the results.")
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        with path.open("ab") as file:
            file.write(piece)
    except OSError as error:
        raise cannot_write(path, error) from error


class Parcel:
    """
    Pieces of files that arrive for a folder, in which nothing shows before all are here.

    :param home: the folder of the benchmark
    :param name: of this parcel
    """

    def __init__(self, home: Path, name: str) -> None:
        self.home = home
        self.staged = home / ".parcels" / name
        shutil.rmtree(self.staged, ignore_errors=True)  # of a session that was killed

    def add(self, name: str, piece: bytes) -> None:
        """
        :param name: from :func:`packed`
        :raises UserError: if it leads out of the folder, or the disk is full
        """
        append(self.staged, name, piece)

    def unpack(self) -> None:
        """Move every folder to its place, stored outputs before the run that tells of them."""
        folders = {path.parent for path in self.staged.rglob("*") if path.is_file()}
        in_store = lambda folder: folder.parent.name == "store"  # noqa: E731
        for folder in sorted(folders, key=lambda f: (not in_store(f), f)):
            target = self.home / folder.relative_to(self.staged)
            try:
                target.parent.mkdir(parents=True, exist_ok=True)
                if target.is_dir() and not in_store(folder):
                    discard(target)
                publish(folder, target)
            except OSError as error:
                raise cannot_write(target, error) from error
        shutil.rmtree(self.staged, ignore_errors=True)
