"""``dpn`` in processes of their own, which can be killed or stopped at a chosen event."""

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

from tiny_bench import FORKS

# one interpreter that has imported all and is forked: a child starts in milliseconds
FORKS.set_forkserver_preload(
    [
        "dpn_plugin.bench",
        "dpn_plugin.cli.bench",
        "dpn_plugin.cli.bench_progress",
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

    Its events are what it does to files below ``out``, and the steps of training. They come in the
    same order every time, so a number names a moment.

    :param suite: the suite file
    :param out: the folder of the benchmark
    :param words: more of the command line
    :param signal: what the process sends itself just before event ``at``
    :param at: the number of an event, from 0
    :param largest: no file may become larger, in bytes
    :param clock: seeds a clock that jumps by days whenever it is read or a file is renamed
    """

    suite: Path
    out: Path
    words: tuple[str, ...] = ()
    signal: int = signal.SIGKILL
    at: int = -1
    largest: int | None = None
    clock: int | None = None
    number: int = field(default_factory=lambda: next(_numbers), init=False)
    process: Any = field(default=None, init=False)

    def log(self, kind: str) -> Path:
        return self.suite.parent / f"{self.number}.{kind}"

    def start(self) -> "Dpn":
        self.log("events").touch()
        self.process = FORKS.Process(target=_dpn, args=(self,))
        self.process.start()
        return self

    def finish(self) -> int:
        """:return: the exit code; below 0 is a signal"""
        self.process.join(300)
        assert self.process.exitcode is not None, "it hangs"
        return self.process.exitcode

    def run(self) -> int:
        return self.start().finish()

    def wait_for_event(self) -> None:
        """Wait until the process has sent itself its signal."""
        while len(self.events) <= self.at:
            assert self.process.is_alive(), self.said
            time.sleep(0.02)

    @property
    def events(self) -> list[str]:
        return self.log("events").read_text("utf-8").splitlines()

    @property
    def said(self) -> str:
        """All that it printed, in one line."""
        return " ".join(self.log("said").read_text("utf-8").split())

    @property
    def done(self) -> str:
        """What it did, in a few words."""
        steps = self.events.count("training.step .")
        files = sum(event.startswith("os.rename") for event in self.events)
        return f"{steps} steps trained, {files} files and folders written"

    def __getstate__(self) -> dict[str, Any]:
        return {**vars(self), "process": None}


def _dpn(self: Dpn) -> None:
    import torch

    from dpn_plugin.cli import main

    torch.set_num_threads(1)
    said = os.open(self.log("said"), os.O_WRONLY | os.O_CREAT)
    for number in (1, 2):
        os.dup2(said, number)
    sys.stdout, sys.stderr = (os.fdopen(number, "w") for number in (1, 2))
    _announce_steps(self.out)
    _draw_one_picture()
    act = _jumping_clock(self.clock) if self.clock is not None else lambda *_: None
    sys.addaudithook(_counting(self, act))
    if self.largest is not None:
        hard = resource.getrlimit(resource.RLIMIT_FSIZE)[1]
        resource.setrlimit(resource.RLIMIT_FSIZE, (self.largest, hard))
    sys.argv = ["dpn", "bench", str(self.suite), "--out", str(self.out), "--device", "cpu"]
    sys.argv += self.words
    main()


def _announce_steps(out: Path) -> None:
    from dpn_plugin.training.loop import Trainer

    step = Trainer._train_step

    def announced(*arguments: Any) -> Any:
        sys.audit("training.step", str(out))
        return step(*arguments)

    Trainer._train_step = announced


def _draw_one_picture() -> None:
    """Drawing all seven would take most of the campaign's time."""
    from dpn_plugin.report import pictures

    pictures._PICTURES = {"roc": pictures._PICTURES["roc"]}


def _counting(self: Dpn, act: Callable[[str, Any], None]) -> Callable[[str, Any], None]:
    log, numbers = os.open(self.log("events"), os.O_WRONLY | os.O_APPEND), count()

    def hook(event: str, arguments: Any) -> None:
        if not _concerns(self.out, event, arguments):
            return
        path = os.fsdecode(arguments[0])
        where = os.path.relpath(path, self.out) if os.path.isabs(path) else path
        with suppress(OSError):  # where no file may grow
            os.write(log, f"{event} {where}\n".encode())
        if next(numbers) == self.at:
            os.kill(os.getpid(), self.signal)
        act(event, arguments)

    return hook


def _concerns(out: Path, event: str, arguments: Any) -> bool:
    if event == "open":
        path, _, flags = arguments
        if isinstance(path, int) or not flags & _WRITING:
            return False
    elif event not in _CHANGES:
        return False
    # within a tree that is removed, names are relative to an open folder
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
