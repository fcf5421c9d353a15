"""Sends runs to a Ray cluster and receives their messages until all have ended."""

from collections.abc import Iterator
from dataclasses import dataclass
from importlib.metadata import version
from pathlib import Path
from typing import Any

from dpn_plugin.bench.execution.ray_task import (
    TRAINED,
    FileTransfer,
    RayTask,
    read_chunks,
    stream_messages,
)
from dpn_plugin.bench.execution.workers import WorkerTracker
from dpn_plugin.bench.executor import RunResult
from dpn_plugin.bench.plan import Plan
from dpn_plugin.bench.sharing import next_ready, sibling_folders

#: unread messages of each run: some hold a chunk of a file
_QUEUED_MESSAGES = 4


@dataclass(frozen=True)
class Resources:
    """
    What every run needs.

    :param cpus: also the number of computing threads
    :param gpus: or a share of one
    :param scratch: whether workers must not write to the output folder
    """

    cpus: int
    gpus: float
    scratch: bool


@dataclass(frozen=True)
class _RemoteRun:
    """A run on the cluster, and the files that it sends back."""

    index: int
    transfer: FileTransfer


class RayScheduler:
    """
    Sends runs to a cluster and restarts those whose worker died.

    :param ray: the module, connected to a cluster
    :param plan: with absolute paths
    :param session: identifies the benchmark, and names the file by which workers recognise the
        output folder
    :param resources: of every run
    :param tracker: receives the messages of the workers
    """

    def __init__(
        self, ray: Any, plan: Plan, session: str, resources: Resources, tracker: WorkerTracker
    ) -> None:
        self.ray, self.plan, self.session, self.resources = ray, plan, session, resources
        self.tracker = tracker
        self.remote = ray.remote(stream_messages).options(
            num_cpus=resources.cpus,
            num_gpus=resources.gpus,
            num_returns="streaming",
            max_retries=0,  # the tracker retries and reports it
            _generator_backpressure_num_objects=_QUEUED_MESSAGES,
        )
        self.streams: dict[Any, _RemoteRun] = {}
        self.waiting: list[int] = []

    def run(self, indices: list[int]) -> Iterator[RunResult]:
        """Return the result of every run, as it ends."""
        self.waiting = list(indices)
        self._send_ready()
        while self.streams:
            ready, _ = self.ray.wait(list(self.streams), num_returns=1, timeout=1.0)
            for stream in ready:
                if (result := self._receive(stream)) is not None:
                    self._send_ready()
                    yield result

    def _send_ready(self) -> None:
        """Send all runs that need not wait for the networks of another one."""
        while True:
            running = [remote_run.index for remote_run in self.streams.values()]
            position = next_ready(self.waiting, running, self.plan.runs)
            if position < 0:
                return
            self._send(self.waiting.pop(position))

    def _send(self, index: int, *, with_files: bool = False) -> None:
        task = RayTask(
            plan=self.plan,
            index=index,
            session=self.session,
            scratch=self.resources.scratch,
            on_driver=not with_files and any(each.exists() for each in self._folders(index)),
            threads=self.resources.cpus,
            version=version("dpn-plugin"),
        )
        stream = self.remote.remote(task, self._read_files(index) if with_files else [])
        self.streams[stream] = _RemoteRun(index, FileTransfer(self.plan.out, str(index)))

    def _folders(self, index: int) -> list[Path]:
        """Return the folders of a run: its own, and those whose networks it copies."""
        run = self.plan.runs[index]
        if run.trained is not None:
            return [run.trained]
        return [run.folder, *sibling_folders(run, self.plan.runs, self.plan.out)]

    def _read_files(self, index: int) -> list[tuple[str, bytes]]:
        run = self.plan.runs[index]
        if run.trained is None:
            folders = dict.fromkeys(self._folders(index))
            return [chunk for each in folders for chunk in read_chunks(each, self.plan.out)]
        chunks = read_chunks(run.trained, run.trained)
        return [(f"{TRAINED}/{name}", chunk) for name, chunk in chunks]

    def _receive(self, stream: Any) -> RunResult | None:
        """Handle the next message of a run and return its result, if that was the last one."""
        remote_run = self.streams[stream]
        try:
            kind, content = self.ray.get(next(stream))
        except self.ray.exceptions.RayTaskError as error:
            raise error.cause from None
        except (self.ray.exceptions.RayError, StopIteration) as error:
            result = self.tracker.record_death(remote_run.index, type(error).__name__)
            self.streams.pop(stream)
            if result is None:
                self._send(remote_run.index)
            return result
        result = self._handle(remote_run, kind, content)
        if result is not None or kind == "needs_files":
            self.streams.pop(stream)
        return result

    def _handle(
        self, remote_run: _RemoteRun, kind: str, content: tuple[Any, ...]
    ) -> RunResult | None:
        if kind == "accepted":
            self.tracker.start(remote_run.index)
        elif kind == "needs_files":
            self.tracker.release(remote_run.index)
            self._send(remote_run.index, with_files=True)
        elif kind == "file":
            remote_run.transfer.add(*content)
        else:
            if kind == "result":
                remote_run.transfer.finish()
            return self.tracker.receive(remote_run.index, kind, content)
        return None
