"""A folder of outputs, each stored once under a hash of everything that it depends on."""

import logging
import re
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

from torch import Tensor

from dpn_plugin._files import creating_folder, locked, remove_folder
from dpn_plugin.errors import CannotWrite, UserError
from dpn_plugin.outputs.entry import DAMAGE, StoredOutputs, read_entry, write_entry
from dpn_plugin.outputs.key import OutputKey
from dpn_plugin.outputs.rows import ArraysWriter
from dpn_plugin.outputs.unfinished import UnfinishedEntry, data_errors, pass_on

_log = logging.getLogger(__name__)
_HASH = re.compile(r"[0-9a-f]{64}")


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
            return read_entry(folder, key_hash)
        except DAMAGE as damage:
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
        with data_errors(), creating_folder(folder) as temporary:
            _write_arrays(temporary, pass_on(batches))
            write_entry(temporary, key)
            self.open(key.hash)  # a damaged entry would stay otherwise
        return self._written(key)

    @contextmanager
    def resume(self, key: OutputKey) -> Iterator[UnfinishedEntry | None]:
        """
        Give the entry of a key, to append chunks to it and finish it; ``None`` if it is finished.

        Chunks of a process that was interrupted are kept. Another process that wants to write the
        same entry waits, and then finds what this one has written.

        :param key: what the outputs depend on
        :raises CannotWrite: if the disk is full or the folder cannot be written
        """
        folder = self._folder(key.hash)
        part = folder.with_name(f".{folder.name}.part")
        with locked(part.with_name(f"{part.name}.lock")):
            if self.open(key.hash) is not None:
                yield None
                return
            with UnfinishedEntry(part, folder, key) as unfinished:
                yield None if unfinished.finished else unfinished

    def _written(self, key: OutputKey) -> StoredOutputs:
        folder, stored = self._folder(key.hash), self.open(key.hash)
        if stored is None:
            raise UserError(f"{folder} was damaged as soon as it was written. Check the disk.")
        return stored

    def _folder(self, key_hash: str) -> Path:
        if not _HASH.fullmatch(key_hash):
            raise UserError(f"key must be 64 hexadecimal digits, got {key_hash!r}.")
        return self.root / key_hash


def _write_arrays(folder: Path, batches: Iterable[Mapping[str, Tensor]]) -> None:
    with ArraysWriter(folder) as arrays:
        for batch in batches:
            arrays.append(batch)
    if not arrays.rows:
        raise UserError("There are no samples to store: the data set is empty.")
