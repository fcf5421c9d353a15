"""A forward pass over a data set, divided among processes and stored in chunks."""

from collections.abc import Callable, Iterator
from contextlib import ExitStack
from dataclasses import dataclass, field
from typing import TypeVar

from torch import Tensor

from dpn_plugin._distributed import Processes
from dpn_plugin.errors import UserError
from dpn_plugin.outputs.entry import StoredOutputs
from dpn_plugin.outputs.key import OutputKey
from dpn_plugin.outputs.store import OutputStore
from dpn_plugin.outputs.unfinished import UnfinishedEntry

#: samples that go through the networks at a time
BATCH = 256
#: Batches of each process between two chunks. This much is lost when a pass is interrupted.
CHUNK = 16

_T = TypeVar("_T")
Outputs = dict[str, Tensor]


@dataclass(frozen=True)
class ForwardPass:
    """
    One pass over a set. Every process computes a part of the batches, the primary one stores them.

    A set of one chunk is stored at once. A larger one is stored chunk by chunk, and an interrupted
    pass is continued after the last whole chunk.

    :param store: where the outputs are kept
    :param key: what they depend on
    :param samples: the number of samples
    :param outputs: gives the outputs of every ``step``-th batch of ``BATCH`` samples, from batch
        ``start`` on
    :param processes: this process and the others
    """

    store: OutputStore
    key: OutputKey
    samples: int
    outputs: Callable[[int, int], Iterator[Outputs]]
    processes: Processes = field(repr=False)

    def run(self) -> StoredOutputs | None:
        """
        Compute and store the outputs. All processes must call this.

        :return: the entry in the primary process, ``None`` in others
        :raises UserError: in all processes, if the outputs cannot be stored
        """
        count = -(-self.samples // BATCH)
        if count <= CHUNK * self.processes.world:
            chunk = self._gathered(self._own(0), 0, count)
            return self._store(chunk, lambda batches: self.store.write(self.key, batches))
        self._run_in_chunks(count)
        return self.store.open(self.key.hash) if self.processes.primary else None

    def _run_in_chunks(self, count: int) -> None:
        with ExitStack() as stack:
            entries: list[UnfinishedEntry] = []  # in the primary process: one, or none if finished

            def resume() -> int:
                entry = stack.enter_context(self.store.resume(self.key))
                if entry is None:
                    return self.samples
                entries.append(entry)
                return entry.rows

            start = -(-self.processes.broadcast(resume) // BATCH)
            own, step = self._own(start), CHUNK * self.processes.world
            for first in range(start, count, step):
                chunk = self._gathered(own, first, min(first + step, count))
                self._store(chunk, lambda batches: entries[0].append(batches))

            def finish() -> None:
                for entry in entries:
                    entry.finish()

            self.processes.broadcast(finish)

    def _own(self, start: int) -> Iterator[Outputs]:
        return self.outputs(start + self.processes.rank, self.processes.world)

    def _gathered(self, own: Iterator[Outputs], first: int, last: int) -> Iterator[Outputs]:
        """Return the outputs of batches in order in the primary process, nothing elsewhere."""
        for _ in range(first, last, self.processes.world):
            gathered = self.processes.gather(next(own, None))
            yield from (outputs for outputs in gathered if outputs is not None)

    def _store(
        self, batches: Iterator[Outputs], write: Callable[[Iterator[Outputs]], _T]
    ) -> _T | None:
        """Write batches in the primary process, and return what ``write`` returns there."""
        written: _T | None = None
        error: UserError | None = None
        if self.processes.primary:
            try:
                written = write(batches)
            except UserError as raised:
                error = raised
        if self.processes.world > 1:
            for _ in batches:
                pass  # every process must hand in its batches, also if they cannot be stored
        self.processes.broadcast(lambda: _raise_if(error))
        return written


def _raise_if(error: UserError | None) -> None:
    if error is not None:
        raise error
