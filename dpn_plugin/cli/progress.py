"""Progress of trainings and benchmarks: live bars on a terminal, plain lines elsewhere."""

import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from rich.console import Console
from rich.progress import (
    BarColumn,
    MofNCompleteColumn,
    Progress,
    TaskID,
    TextColumn,
    TimeRemainingColumn,
)

from dpn_plugin.cli.output import is_primary

if TYPE_CHECKING:  # these import torch, which `dpn train --help` does not need
    from dpn_plugin.bench import PlannedRun
    from dpn_plugin.runs import EpochRecord
    from dpn_plugin.training import StepMetrics, TrainingMonitor

_SMOOTHING = 0.9


@contextmanager
def training_progress() -> Iterator["TrainingMonitor | None"]:
    """Give a monitor for ``train`` in the first process, and ``None`` in all others."""
    if not is_primary():
        yield None
    elif sys.stderr.isatty():
        bar = LiveBar()
        with bar.progress:
            yield bar
    else:
        yield PlainLines()


@contextmanager
def image_progress(total: int) -> Iterator[Callable[[int], None]]:
    """
    Give a function that takes the number of images done so far; on a terminal it shows a bar.

    :param total: how many there are
    """
    columns = (BarColumn(), MofNCompleteColumn(), TimeRemainingColumn(compact=True))
    console = Console(stderr=True)
    with Progress(*columns, console=console, disable=not console.is_terminal) as progress:
        task = progress.add_task("", total=total)
        yield lambda done: progress.update(task, completed=done)


class LiveBar:
    """One bar per network: parts of the loss, accuracy, images per second, time left."""

    def __init__(self) -> None:
        self.progress = Progress(
            BarColumn(bar_width=20),
            MofNCompleteColumn(),
            TextColumn("{task.description}"),
            TimeRemainingColumn(compact=True),
            console=Console(stderr=True),
        )
        self.held_out = ""
        self._rate, self._last = 0.0, 0.0

    def started(self, steps: int, done: int) -> None:
        """Add a bar for a network whose training starts."""
        self._task = self.progress.add_task("", total=steps, completed=done)
        self._rate, self._last, self.held_out = 0.0, time.monotonic(), ""

    def stepped(self, images: int, metrics: "StepMetrics") -> None:
        """Show the loss, accuracy and speed of a step."""
        now = time.monotonic()
        rate = images / max(now - self._last, 1e-9)
        self._rate = _SMOOTHING * self._rate + (1 - _SMOOTHING) * rate if self._rate else rate
        self._last = now
        described = f"{_losses(metrics)} {self._rate:,.0f} images/s{self.held_out}"
        self.progress.update(self._task, advance=1, description=described)

    def finished_epoch(self, epoch: "EpochRecord") -> None:
        """Keep the accuracy on held-out data for the next steps."""
        self.held_out = f" · held out {epoch.held_out_accuracy:.3f}"
        self._last = time.monotonic()


class PlainLines:
    """One line per epoch, for log files."""

    def started(self, steps: int, done: int) -> None:
        """Print the number of steps."""
        self._print(f"{steps} steps" + (f", going on after step {done}" if done else ""))

    def stepped(self, images: int, metrics: "StepMetrics") -> None:
        """Print nothing: steps are not logged."""

    def finished_epoch(self, epoch: "EpochRecord") -> None:
        """Print losses, accuracies and speed of an epoch."""
        self._print(
            f"epoch {epoch.epoch}: {_losses(epoch)}, held out: loss {epoch.held_out_loss:.4f} "
            f"accuracy {epoch.held_out_accuracy:.3f}, {epoch.images_per_second:,.0f} images/s"
        )

    @staticmethod
    def _print(line: str) -> None:
        print(line, file=sys.stderr, flush=True)


def _losses(figures: "StepMetrics | EpochRecord") -> str:
    loss = f"loss {figures.loss:.4f}"
    if figures.loss_out:
        loss += f" ({figures.loss_in:.4f} in, {figures.loss_out:.4f} out)"
    return f"{loss} accuracy {figures.accuracy:.3f}"


class BenchProgress:
    """Shows how many runs are done, and the steps and detectors of the active ones."""

    def __init__(self) -> None:
        self.console = Console(stderr=True, quiet=not is_primary())
        self.progress = Progress(
            TextColumn("{task.description}"),
            BarColumn(),
            MofNCompleteColumn(),
            TimeRemainingColumn(),
            TextColumn("{task.fields[note]}"),
            console=self.console,
            disable=not self.console.is_terminal,
        )
        self.all = self.progress.add_task("runs", total=None, note="")

    def __enter__(self) -> "BenchProgress":
        self.progress.start()
        return self

    def __exit__(self, *problem: Any) -> None:
        self.progress.stop()

    def start_run(self, index: int, total: int, run: "PlannedRun") -> "_RunRow":
        """Add the row of a run that starts."""
        if self.progress.tasks[self.all].total != total:  # trials of a search, then runs
            self.progress.reset(self.all, total=total)
        if not self.console.is_terminal:
            self.console.print(f"[{index + 1}/{total}] {run.title}", markup=False)
        return _RunRow(self, self.progress.add_task(run.title, total=None, note=""))

    def on_warning(self, message: str) -> None:
        """Print something that a reader of the results should know."""
        self.console.print(message, markup=False)


class _RunRow:
    """The row of one run."""

    def __init__(self, table: BenchProgress, task: TaskID) -> None:
        self.table, self.task = table, task

    def started(self, steps: int, done: int) -> None:
        self.table.progress.reset(self.task, total=steps, completed=done)

    def stepped(self, images: int, metrics: "StepMetrics") -> None:
        note = f"loss {metrics.loss:.3f}, accuracy {metrics.accuracy:.2f}"
        self.table.progress.update(self.task, advance=1, note=note)

    def finished_epoch(self, epoch: "EpochRecord") -> None: ...

    def evaluating(self, detector: str) -> None:
        self.table.progress.update(self.task, note=f"scoring with {detector}")

    def ended(self) -> None:
        self.table.progress.remove_task(self.task)
        self.table.progress.advance(self.table.all)
