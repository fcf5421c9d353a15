"""Runs on this machine: one after the other in this process, or several at a time in a pool."""

import multiprocessing
import os
import secrets
import signal
import threading
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass, replace
from multiprocessing import forkserver
from multiprocessing.connection import Connection, wait
from multiprocessing.context import ForkServerProcess
from traceback import format_exc

from dpn_plugin._signals import stop_on_signals
from dpn_plugin.bench.benchmark import Benchmark
from dpn_plugin.bench.execution.workers import WorkerTracker, carry_out_remotely
from dpn_plugin.bench.executor import BenchMonitor, RunResult
from dpn_plugin.bench.plan import Plan
from dpn_plugin.bench.sharing import next_ready
from dpn_plugin.data import SharedSets, default_workers
from dpn_plugin.errors import UserError

#: workers are forked from a process that has imported everything and computed nothing
_FORKSERVER = multiprocessing.get_context("forkserver")
_GRACE_PERIOD = 30  # seconds that workers have to finish their step


class LocalExecutor:
    """Carries out the runs in this process."""

    def slots(self) -> int:
        """Return how many runs are carried out at a time."""
        return 1

    def execute(self, benchmark: Benchmark, monitor: BenchMonitor) -> Iterator[RunResult]:
        """Return the result of every run, as it ends."""
        runs = benchmark.plan.runs
        for index, run in enumerate(runs):
            yield benchmark.carry_out(index, monitor.start_run(index, len(runs), run))


@dataclass(frozen=True)
class PoolExecutor:
    """
    Carries out several runs at a time.

    A small network leaves most cores idle: two runs at a time finish sooner than one after the
    other with twice the threads.

    This is not a :class:`concurrent.futures.ProcessPoolExecutor`: a worker that dies breaks such a
    pool and ends the runs of all others, and it cannot ask a worker to stop after its step.

    :param jobs: runs at a time
    :param threads: number of threads that each of them computes with
    """

    jobs: int
    threads: int = 1

    def slots(self) -> int:
        """Return how many runs are carried out at a time."""
        return self.jobs

    def execute(self, benchmark: Benchmark, monitor: BenchMonitor) -> Iterator[RunResult]:
        """Return the result of every run, as it ends."""
        if benchmark.processes.world > 1:
            raise UserError("--jobs starts processes of its own: use it without torchrun.")
        plan = benchmark.plan
        tracker = WorkerTracker(plan, monitor, benchmark.warnings)
        waiting = list(range(len(plan.runs)))
        workers: list[_Worker] = []
        try:
            shared = benchmark.data.datasets.shared
            self._start_workers(workers, min(self.jobs, len(waiting)), plan, shared)
            while waiting or any(worker.index is not None for worker in workers):
                _assign_runs(workers, waiting, plan, tracker)
                yield from _receive(workers, waiting, tracker)
        finally:
            for worker in workers:
                worker.stop()

    def _start_workers(
        self, workers: "list[_Worker]", count: int, plan: Plan, shared: SharedSets
    ) -> None:
        _start_forkserver()
        if plan.storage.workers is None:  # the processes that decode share the cores, too
            decoding = max(1, default_workers() // count)
            plan = replace(plan, storage=replace(plan.storage, workers=decoding))
        session = secrets.token_hex(8)
        with stop_on_signals() as stop:  # a process must not be interrupted while it starts
            while len(workers) < count and not stop.requested:
                workers.append(_Worker(plan, session, self.threads, shared))
        if stop.requested:
            stop.stop("before the first run")


class _Worker:
    """A worker process, which is replaced if it dies."""

    def __init__(self, plan: Plan, session: str, threads: int, shared: SharedSets) -> None:
        self.arguments = plan, session, threads, shared
        self.index: int | None = None
        self._start_process()

    def _start_process(self) -> None:
        self.connection, theirs = _FORKSERVER.Pipe()
        self.process: ForkServerProcess = _FORKSERVER.Process(
            target=_serve, args=(*self.arguments, theirs)
        )
        self.process.start()
        theirs.close()

    def start_run(self, index: int, tracker: WorkerTracker) -> None:
        self.index = index
        tracker.start(index)
        with suppress(OSError):  # a worker that died is detected when its pipe closes
            self.connection.send(index)

    def receive(self, tracker: WorkerTracker, waiting: list[int]) -> RunResult | None:
        """Handle a message; if the worker died, the run waits for a new attempt."""
        index, self.index = self.index, None
        assert index is not None
        try:
            result = tracker.receive(index, *self.connection.recv())
        except (EOFError, OSError):
            self.process.join()
            result = tracker.record_death(index, f"exit code {self.process.exitcode}")
            if result is None:
                waiting.insert(0, index)
            self._start_process()
        else:
            self.index = index if result is None else None
        return result

    def stop(self) -> None:
        with suppress(OSError):
            self.connection.send(None)
        self.process.join(_GRACE_PERIOD if self.index is None else 0)
        if self.process.is_alive():
            self.process.terminate()  # it stops after its step, with a checkpoint
            self.process.join(_GRACE_PERIOD)
        self.process.kill()
        self.process.join()


def _start_forkserver() -> None:
    _FORKSERVER.set_forkserver_preload(["dpn_plugin.bench.execution.local", "pytorch_ood.loss"])
    if threading.current_thread() is threading.main_thread():
        # it keeps the handler that it inherits: Ctrl-C must not interrupt its imports
        before = signal.signal(signal.SIGINT, signal.SIG_IGN)
        try:
            forkserver.ensure_running()
        finally:
            signal.signal(signal.SIGINT, before)


def _assign_runs(
    workers: list[_Worker], waiting: list[int], plan: Plan, tracker: WorkerTracker
) -> None:
    """Give every idle worker a run that can start."""
    for worker in workers:
        running = [each.index for each in workers if each.index is not None]
        position = next_ready(waiting, running, plan.runs) if worker.index is None else -1
        if position >= 0:
            worker.start_run(waiting.pop(position), tracker)


def _receive(
    workers: list[_Worker], waiting: list[int], tracker: WorkerTracker
) -> Iterator[RunResult]:
    busy = {worker.connection: worker for worker in workers if worker.index is not None}
    for connection in wait(list(busy), timeout=1.0):
        assert isinstance(connection, Connection)
        if (result := busy[connection].receive(tracker, waiting)) is not None:
            yield result


def _serve(
    plan: Plan, session: str, threads: int, shared: SharedSets, connection: Connection
) -> None:
    """Carry out runs until ``None`` arrives or the other end of the pipe is closed."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C reaches all; the parent stops the workers
    threading.Thread(target=_exit_with_parent, daemon=True).start()
    with suppress(KeyboardInterrupt):  # it was asked to stop and did so after a whole step
        while (index := connection.recv()) is not None:
            try:
                carry_out_remotely(plan, index, session, threads, connection.send, shared)
            except Exception as error:
                message = f"{type(error).__name__}: {error}"
                connection.send(("error", (message, format_exc())))


def _exit_with_parent() -> None:
    parent = multiprocessing.parent_process()
    if parent is not None:
        parent.join()
        os._exit(1)  # the parent was killed, and another benchmark may use the folder now
