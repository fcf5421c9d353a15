"""Several units at a time on this machine, each in a process of its own."""

import multiprocessing
import os
import secrets
import signal
import threading
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass
from multiprocessing import forkserver
from multiprocessing.connection import Connection, wait
from multiprocessing.context import ForkServerProcess
from traceback import format_exc

from dpn_plugin.bench.board import Board
from dpn_plugin.bench.executor import BenchMonitor, Outcome
from dpn_plugin.bench.teller import tell_unit
from dpn_plugin.bench.workshop import Job, Workshop
from dpn_plugin.errors import UserError
from dpn_plugin.training.stopping import stop_on_signals

__all__ = ["PoolExecutor"]

#: processes are forked from one that has imported all and done nothing
_FORKS = multiprocessing.get_context("forkserver")
_FAREWELL = 30  # seconds that workers have to finish their step


@dataclass(frozen=True)
class PoolExecutor:
    """
    A small network leaves most cores idle: two of them at a time are done sooner than one after
    the other with twice the threads.

    :param jobs: units at a time
    :param threads: that each of them computes with
    """

    jobs: int
    threads: int = 1

    def run(self, workshop: Workshop, monitor: BenchMonitor) -> Iterator[Outcome]:
        """See :meth:`dpn_plugin.bench.Executor.run`."""
        if workshop.processes.world > 1:
            raise UserError("--jobs starts processes of its own: use it without torchrun.")
        _start_server()
        board = Board(workshop.job.plan, monitor, workshop.notices)
        waiting = list(range(len(workshop.job.plan.units)))[::-1]
        count, session = min(self.jobs, len(waiting)), secrets.token_hex(8)
        workers: list[_Worker] = []
        try:
            with stop_on_signals() as stop:  # a process that is half begun would complain
                while len(workers) < count and not stop.requested:
                    workers.append(_Worker(workshop.job, session, self.threads))
            if stop.requested:
                stop.stop("before the first run")
            while waiting or any(worker.index is not None for worker in workers):
                for worker in workers:
                    if worker.index is None and waiting:
                        worker.begin(waiting.pop(), board)
                yield from _heard(workers, waiting, board)
        finally:
            for worker in workers:
                worker.dismiss()


class _Worker:
    """A process, begun again if it dies."""

    def __init__(self, job: Job, session: str, threads: int) -> None:
        self.arguments = job, session, threads
        self.index: int | None = None
        self._start()

    def _start(self) -> None:
        self.words, theirs = _FORKS.Pipe()
        self.process: ForkServerProcess = _FORKS.Process(
            target=_serve, args=(*self.arguments, theirs)
        )
        self.process.start()
        theirs.close()

    def begin(self, index: int, board: Board) -> None:
        self.index = index
        board.begin(index)
        with suppress(OSError):  # a dead process is found by its silence
            self.words.send(index)

    def heard(self, board: Board, waiting: list[int]) -> Outcome | None:
        """:return: how its unit ended, if it did; if it died, the unit waits again"""
        index, self.index = self.index, None
        assert index is not None
        try:
            found = board.hear(index, *self.words.recv())
        except (EOFError, OSError):
            self.process.join()
            found = board.lose(index, f"exit code {self.process.exitcode}")
            if found is None:
                waiting.append(index)
            self._start()
        else:
            self.index = index if found is None else None
        return found

    def dismiss(self) -> None:
        with suppress(OSError):
            self.words.send(None)
        self.process.join(_FAREWELL if self.index is None else 0)
        if self.process.is_alive():
            self.process.terminate()  # it stops after its step, with a checkpoint
            self.process.join(_FAREWELL)
        self.process.kill()
        self.process.join()


def _start_server() -> None:
    _FORKS.set_forkserver_preload(["dpn_plugin.bench.pool", "pytorch_ood.loss"])
    if threading.current_thread() is threading.main_thread():
        # what it inherits it keeps: Ctrl-C must not interrupt its imports with a traceback
        before = signal.signal(signal.SIGINT, signal.SIG_IGN)
        try:
            forkserver.ensure_running()
        finally:
            signal.signal(signal.SIGINT, before)


def _heard(workers: list[_Worker], waiting: list[int], board: Board) -> Iterator[Outcome]:
    busy = {worker.words: worker for worker in workers if worker.index is not None}
    for words in wait(list(busy), timeout=1.0):
        assert isinstance(words, Connection)
        if (found := busy[words].heard(board, waiting)) is not None:
            yield found


def _serve(job: Job, session: str, threads: int, words: Connection) -> None:
    """Do units until ``None`` comes, or nobody listens any more."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C reaches all; the parent ends the others
    threading.Thread(target=_end_with_parent, daemon=True).start()
    with suppress(KeyboardInterrupt):  # asked to stop, it did so after a whole step
        while (index := words.recv()) is not None:
            try:
                tell_unit(job, index, session, threads, words.send)
            except Exception as error:
                words.send(("raised", (f"{type(error).__name__}: {error}", format_exc())))


def _end_with_parent() -> None:
    parent = multiprocessing.parent_process()
    if parent is not None:
        parent.join()
        os._exit(1)  # killed: the folder may belong to another benchmark now
