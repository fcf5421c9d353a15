"""An entry that is written in chunks, so that an interrupted pass can be continued."""

import logging
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path
from types import TracebackType

import numpy as np
from pydantic import BaseModel, ConfigDict
from torch import Tensor

from dpn_plugin._files import move_into_place, remove_folder, write_errors
from dpn_plugin._records import DamagedRecord, Record, read_record, write_record
from dpn_plugin.outputs.entry import DAMAGE, ENTRY_FILE, read_entry, write_entry
from dpn_plugin.outputs.key import ArrayName, OutputKey
from dpn_plugin.outputs.rows import ArraysWriter, Row, array_path

_log = logging.getLogger(__name__)
CHUNKS_FILE = "chunks.json"


class RowRecord(BaseModel):
    """Shape and type of one row of an array."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    shape: list[int]
    dtype: str


class ChunkRecord(BaseModel):
    """The number of rows of a chunk, and the SHA-256 of their bytes in every array."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    rows: int
    sha256: dict[ArrayName, str]


class ChunksRecord(Record):
    """All of ``chunks.json``: the key of an unfinished entry, and the chunks that are whole."""

    key: OutputKey
    arrays: dict[ArrayName, RowRecord]
    chunks: list[ChunkRecord]

    @property
    def rows(self) -> int:
        """The number of rows of all chunks."""
        return sum(chunk.rows for chunk in self.chunks)


class UnfinishedEntry:
    """
    A context manager for an entry that grows by chunks.

    Its files are those of the finished entry, with fewer rows, and ``chunks.json``. A chunk counts
    once it is on the disk; chunks of an earlier process are compared with their hashes. When the
    block ends before :meth:`finish`, the whole chunks stay.

    :param folder: of the unfinished entry; no other process may use it at the same time
    :param target: the folder of the finished entry
    :param key: what the outputs depend on
    :raises CannotWrite: if the disk is full or the folder cannot be written
    """

    def __init__(self, folder: Path, target: Path, key: OutputKey) -> None:
        self.folder, self.target, self.key = folder, target, key
        self.finished = False
        self._record = ChunksRecord(key=key, arrays={}, chunks=[])

    def __enter__(self) -> "UnfinishedEntry":
        with write_errors(self.folder):
            if self._is_complete():
                self._move()
                return self
            self._arrays = self._take_up()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        if self.finished:
            return
        with suppress(OSError), self._arrays:
            self._arrays.cut(self.rows)
        if not self.rows:
            remove_folder(self.folder)

    @property
    def rows(self) -> int:
        """The number of rows in whole chunks."""
        return self._record.rows

    def append(self, batches: Iterable[Mapping[str, Tensor]]) -> None:
        """
        Append a chunk, which is on the disk when this returns.

        :param batches: see :meth:`OutputStore.write`
        :raises UserError: if names or shapes vary, or the disk is full
        """
        with data_errors(), write_errors(self.target):
            for batch in pass_on(batches):
                self._arrays.append(batch)
            self._arrays.sync()
            self._count_chunk()

    def finish(self) -> None:
        """
        Make the entry visible.

        :raises CannotWrite: if the disk is full
        """
        with write_errors(self.target):
            self._arrays.close()
            write_entry(self.folder, self.key)
            self._move()

    def _count_chunk(self) -> None:
        start, writers = self.rows, self._arrays.writers
        count = self._arrays.rows - start
        chunk = ChunkRecord(rows=count, sha256=self._arrays.hash_rows(start, count))
        arrays = {
            name: RowRecord(shape=list(writer.row[0]), dtype=writer.row[1].str)
            for name, writer in writers.items()
            if writer.row is not None
        }
        record = ChunksRecord(key=self.key, arrays=arrays, chunks=[*self._record.chunks, chunk])
        write_record(self.folder / CHUNKS_FILE, record)
        self._record = record

    def _is_complete(self) -> bool:
        """Whether a process was interrupted just before it gave the folder its final name."""
        if not (self.folder / ENTRY_FILE).is_file():
            return False
        try:
            read_entry(self.folder, self.key.hash)
        except DAMAGE:
            (self.folder / ENTRY_FILE).unlink()
            return False
        return True

    def _move(self) -> None:
        (self.folder / CHUNKS_FILE).unlink(missing_ok=True)
        move_into_place(self.folder, self.target)
        if self.folder.exists():
            remove_folder(self.folder)
        self.finished = True

    def _take_up(self) -> ArraysWriter:
        """Open the files, with the chunks that are intact."""
        try:
            return self._open_files()
        except (FileNotFoundError, DamagedRecord, *DAMAGE) as damage:
            if self.folder.exists():
                _log.warning("Unfinished outputs are damaged and are computed again: %s", damage)
                remove_folder(self.folder)
        self.folder.mkdir(parents=True)
        self._record = ChunksRecord(key=self.key, arrays={}, chunks=[])
        return ArraysWriter(self.folder)

    def _open_files(self) -> ArraysWriter:
        record = read_record(self.folder / CHUNKS_FILE, ChunksRecord)
        if record.key.hash != self.key.hash:
            raise ValueError(f"{self.folder / CHUNKS_FILE} belongs to another key")
        for name in record.arrays:
            _check_file(array_path(self.folder, name))
        rows = {name: _row(array) for name, array in record.arrays.items()}
        arrays = ArraysWriter(self.folder, rows)
        chunks = _intact_chunks(arrays, record.chunks)
        if len(chunks) < len(record.chunks):
            which = f"chunk {len(chunks) + 1} of {len(record.chunks)} in {self.folder}"
            _log.warning("Unfinished outputs are damaged from %s on: computed again.", which)
        self._record = record.model_copy(update={"chunks": chunks})
        arrays.cut(self.rows)
        return arrays


def _check_file(path: Path) -> None:
    # a link could lead to a file that is not ours, which would be written to
    if path.is_symlink() or not path.is_file():
        raise FileNotFoundError(f"{path} is missing")


def _row(record: RowRecord) -> Row:
    return tuple(record.shape), np.dtype(record.dtype)


def _intact_chunks(arrays: ArraysWriter, chunks: list[ChunkRecord]) -> list[ChunkRecord]:
    """Return the chunks that are what was written, up to the first that is not."""
    intact: list[ChunkRecord] = []
    start = 0
    for chunk in chunks:
        if arrays.hash_rows(start, chunk.rows) != chunk.sha256:
            break
        intact.append(chunk)
        start += chunk.rows
    return intact


class _DataError(Exception):
    """Carries an error of the data out of a block that reports system errors as its own."""

    def __init__(self, error: OSError) -> None:
        super().__init__(error)
        self.error = error


@contextmanager
def data_errors() -> Iterator[None]:
    """Within the block, errors of the data that :func:`pass_on` took are raised as they are."""
    try:
        yield
    except _DataError as error:
        raise error.error from None


def pass_on(batches: Iterable[Mapping[str, Tensor]]) -> Iterator[Mapping[str, Tensor]]:
    """Return the batches; an error of the system that they raise is not one of writing them."""
    try:
        # not with "yield from", which would close the batches when storing them fails
        for batch in batches:  # noqa: UP028
            yield batch
    except OSError as error:
        raise _DataError(error) from error
