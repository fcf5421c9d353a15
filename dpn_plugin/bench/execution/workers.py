"""Runs in worker processes: the messages that workers send, and new attempts after one died."""

import time
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import torch

from dpn_plugin._distributed import Processes
from dpn_plugin.bench.benchmark import Benchmark
from dpn_plugin.bench.data import SuiteData, load_suite_data
from dpn_plugin.bench.executor import BenchMonitor, RunMonitor, RunResult
from dpn_plugin.bench.plan import Plan
from dpn_plugin.data import SharedSets
from dpn_plugin.errors import CannotWrite, UserError
from dpn_plugin.evaluation import WarningCollector, collect_warnings
from dpn_plugin.runs import EpochRecord
from dpn_plugin.training import StepMetrics

#: a kind and its content: ``warning``, ``result``, ``cannot_write``, ``error``, or the name of a
#: method of the run's monitor with its arguments
Message = tuple[str, tuple[Any, ...]]

#: how often a run is started before it counts as failed
ATTEMPTS = 4

_PAUSE = 0.5  # seconds between two messages about steps

#: the data of one session: a process serves one session at a time
_data: dict[str, SuiteData] = {}


def carry_out_remotely(
    plan: Plan,
    index: int,
    session: str,
    threads: int,
    send: Callable[[Message], None],
    shared: SharedSets | None = None,
) -> None:
    """
    Carry out a run and send messages about it; the last one is ``result`` or ``cannot_write``.

    :param plan: with paths that are valid in this process
    :param index: of the run
    :param session: identifies the benchmark, whose data is kept from one run to the next
    :param threads: number of threads that compute
    :param send: sends a message
    :param shared: data sets in mapped files that the main process has loaded
    """
    torch.set_num_threads(threads)
    with collect_warnings(lambda message: send(("warning", (message,)))) as warnings:
        try:
            data = _load_data(plan, session, shared)
            benchmark = Benchmark(plan, Processes.join(plan.device), warnings, data)
            result = benchmark.carry_out(index, _SendingMonitor(send))
        except CannotWrite as error:
            send(("cannot_write", (str(error),)))
            return
        except UserError as error:  # the data cannot be loaded here
            result = RunResult(index, reason=str(error))
        send(("result", (result,)))


def _load_data(plan: Plan, session: str, shared: SharedSets | None) -> SuiteData:
    if session not in _data:
        _data.clear()
        _data[session] = load_suite_data(plan, shared=shared)
    return _data[session]


class _SendingMonitor:
    """Sends the progress of a run; steps are sent a few times a second."""

    def __init__(self, send: Callable[[Message], None]) -> None:
        self.send = send
        self.steps, self.done, self.last_sent = 0, 0, 0.0

    def started(self, steps: int, done: int) -> None:
        self.steps, self.done = steps, done
        self.send(("started", (steps, done)))

    def stepped(self, images: int, metrics: StepMetrics) -> None:
        self.done += 1
        if time.monotonic() - self.last_sent > _PAUSE or self.done == self.steps:
            self.last_sent = time.monotonic()
            self.send(("started", (self.steps, self.done - 1)))
            self.send(("stepped", (images, metrics)))

    def finished_epoch(self, epoch: EpochRecord) -> None: ...

    def evaluating(self, detector: str) -> None:
        self.send(("evaluating", (detector,)))

    def ended(self) -> None: ...


@dataclass
class WorkerTracker:
    """
    Receives progress messages from the worker processes.

    :param plan: whose runs are carried out
    :param monitor: receives the progress
    :param warnings: receives warnings
    """

    plan: Plan
    monitor: BenchMonitor
    warnings: WarningCollector
    monitors: dict[int, RunMonitor] = field(default_factory=dict, init=False)
    deaths: dict[int, int] = field(default_factory=dict, init=False)

    def start(self, index: int) -> None:
        """A worker starts a run."""
        run = self.plan.runs[index]
        self.monitors[index] = self.monitor.start_run(index, len(self.plan.runs), run)

    def receive(self, index: int, kind: str, content: tuple[Any, ...]) -> RunResult | None:
        """
        Handle a message and return the result of the run, if this was its last message.

        :param index: of the run
        :param kind: see :data:`~dpn_plugin.bench.execution.workers.Message`
        :param content: depends on the kind
        :raises CannotWrite: if the disk of the worker is full
        """
        if kind == "warning":
            self.warnings.add(*content)
        elif kind == "result":
            return self.finish(*content)
        elif kind == "cannot_write":
            raise CannotWrite(*content)
        elif kind == "error":
            message, trace = content
            raise RuntimeError(f"{self.plan.runs[index].title}: {message}\n{trace}")
        else:
            getattr(self.monitors[index], kind)(*content)
        return None

    def finish(self, result: RunResult) -> RunResult:
        """End the progress of a run and return its result."""
        self.release(result.index)
        return result

    def release(self, index: int) -> None:
        """End the progress of a run that a worker has given back."""
        if index in self.monitors:
            self.monitors.pop(index).ended()

    def record_death(self, index: int, reason: str) -> RunResult | None:
        """
        Count the death of a worker.

        :param index: of the run that it carried out
        :param reason: how the worker died
        :return: the failure of the run if that happened too often; ``None`` if it is to be retried
        """
        self.deaths[index] = self.deaths.get(index, 0) + 1
        if self.deaths[index] == ATTEMPTS:
            failure = f"its worker died {ATTEMPTS} times ({reason})"
            return self.finish(RunResult(index, reason=failure))
        title = self.plan.runs[index].title
        self.warnings.add(f"The worker of {title} died ({reason}); another one continues.")
        self.release(index)
        return None
