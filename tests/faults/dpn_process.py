"""``dpn bench`` in a process of its own, which can be killed or stopped at a chosen event."""

import os
import resource
import signal
import sys
import time
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, field
from itertools import count
from pathlib import Path
from random import Random
from typing import Any

from child_processes import FORKSERVER

FORKSERVER.set_forkserver_preload(
    [
        "dpn_plugin.bench",
        "dpn_plugin.cli.bench",
        "dpn_plugin.cli.progress",
        "dpn_plugin.report",
        "matplotlib.backends.backend_agg",
        "matplotlib.backends.backend_svg",
        "pytorch_ood.loss",
        "sklearn.datasets",
        "dpn_process",
    ]
)

_numbers = count()
_CHANGES = {"os.rename", "os.remove", "os.mkdir", "os.rmdir", "training.step"}
_WRITING = os.O_WRONLY | os.O_RDWR | os.O_CREAT


@dataclass
class Dpn:
    """
    One ``dpn bench`` of a suite file.

    Its events are the changes of files below ``out`` and the steps of training. They come in the
    same order every time, so a number identifies a moment.

    :param suite: the suite file
    :param out: the folder of the benchmark
    :param arguments: more arguments of the command
    :param signal: the signal that the process sends itself just before event ``at``
    :param at: the number of an event, from 0
    :param largest: the largest size of a file in bytes
    :param small: bytes of decoded images that are held in memory rather than in a cache
    :param chunk: batches of a forward pass between two chunks
    :param clock: seed of a clock that jumps by days whenever it is read or a file is renamed
    """

    suite: Path
    out: Path
    arguments: tuple[str, ...] = ()
    signal: int = signal.SIGKILL
    at: int = -1
    largest: int | None = None
    small: int | None = None
    chunk: int | None = None
    clock: int | None = None
    number: int = field(default_factory=lambda: next(_numbers), init=False)
    process: Any = field(default=None, init=False)

    def log(self, kind: str) -> Path:
        return self.suite.parent / f"{self.number}.{kind}"

    def start(self) -> "Dpn":
        self.log("events").touch()
        self.process = FORKSERVER.Process(target=_run_dpn, args=(self,))
        self.process.start()
        return self

    def finish(self) -> int:
        """Return the exit code; below 0 is a signal."""
        self.process.join(300)
        assert self.process.exitcode is not None, "the process hangs"
        return self.process.exitcode

    def run(self) -> int:
        return self.start().finish()

    def wait_for_event(self) -> None:
        """Wait until the process has sent itself its signal."""
        while len(self.events) <= self.at:
            assert self.process.is_alive(), self.output
            time.sleep(0.02)

    @property
    def events(self) -> list[str]:
        return self.log("events").read_text("utf-8").splitlines()

    @property
    def output(self) -> str:
        """Everything that it printed, in one line."""
        return " ".join(self.log("output").read_text("utf-8").split())

    @property
    def summary(self) -> str:
        """The number of steps and of files."""
        steps = self.events.count("training.step .")
        files = sum(event.startswith("os.rename") for event in self.events)
        return f"{steps} steps trained, {files} files and folders written"

    def __getstate__(self) -> dict[str, Any]:
        return {**vars(self), "process": None}


def _run_dpn(self: Dpn) -> None:
    import torch

    from dpn_plugin.cli import main
    from dpn_plugin.outputs import forward_pass

    torch.set_num_threads(1)
    forward_pass.CHUNK = self.chunk or forward_pass.CHUNK
    output = os.open(self.log("output"), os.O_WRONLY | os.O_CREAT)
    for number in (1, 2):
        os.dup2(output, number)
    sys.stdout, sys.stderr = (os.fdopen(number, "w") for number in (1, 2))
    _audit_steps(self.out)
    _draw_one_figure()
    act = _jumping_clock(self.clock) if self.clock is not None else lambda *_: None
    sys.addaudithook(_counting_hook(self, act))
    if self.largest is not None:
        hard = resource.getrlimit(resource.RLIMIT_FSIZE)[1]
        resource.setrlimit(resource.RLIMIT_FSIZE, (self.largest, hard))
    if self.small is not None:
        from dpn_plugin.data import storage

        storage.SMALL = self.small
    sys.argv = ["dpn", "bench", str(self.suite), "--out", str(self.out), "--device", "cpu"]
    sys.argv += self.arguments
    main()


def _audit_steps(out: Path) -> None:
    from dpn_plugin.training.trainer import Trainer

    step = Trainer._train_step

    def audited(*arguments: Any) -> Any:
        sys.audit("training.step", str(out))
        return step(*arguments)

    Trainer._train_step = audited


def _draw_one_figure() -> None:
    """Draw one figure instead of seven, which would take most of the time of these tests."""
    from dpn_plugin.report import figures

    figures._FIGURES = {"roc": figures._FIGURES["roc"]}


def _counting_hook(self: Dpn, act: Callable[[str, Any], None]) -> Callable[[str, Any], None]:
    log, numbers = os.open(self.log("events"), os.O_WRONLY | os.O_APPEND), count()

    def hook(event: str, arguments: Any) -> None:
        if not _is_counted(self.out, event, arguments):
            return
        path = os.fsdecode(arguments[0])
        where = os.path.relpath(path, self.out) if os.path.isabs(path) else path
        with suppress(OSError):  # if files must not grow
            os.write(log, f"{event} {where}\n".encode())
        if next(numbers) == self.at:
            os.kill(os.getpid(), self.signal)
        act(event, arguments)

    return hook


def _is_counted(out: Path, event: str, arguments: Any) -> bool:
    if event == "open":
        path, _, flags = arguments
        if isinstance(path, int) or not flags & _WRITING:
            return False
    elif event not in _CHANGES:
        return False
    # names are relative to an open folder while a tree is removed
    path = os.fsdecode(arguments[0])
    return path.startswith(str(out)) or not os.path.isabs(path)


def _jumping_clock(seed: int) -> Callable[[str, Any], None]:
    random, now, days = Random(seed), time.time, 86_400

    def jumped() -> float:
        return now() + random.randint(-1000, 1000) * days

    time.time = jumped
    time.time_ns = lambda: int(jumped() * 1e9)

    def act(event: str, arguments: Any) -> None:
        if event == "os.rename" and os.path.isfile(arguments[0]):
            os.utime(arguments[0], (jumped(), jumped()))

    return act
