"""How a benchmark goes: a row for every run under way or, without a terminal, a line for each."""

from typing import Any

from rich.console import Console
from rich.progress import (
    BarColumn,
    MofNCompleteColumn,
    Progress,
    TaskID,
    TextColumn,
    TimeRemainingColumn,
)

from dpn_plugin.bench import Unit
from dpn_plugin.cli.output import is_primary

__all__ = ["BenchProgress"]


class BenchProgress:
    """Shows how many runs are done, and the steps and detectors of those under way."""

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

    def unit(self, index: int, total: int, unit: Unit) -> "_Row":
        """A run begins."""
        self.progress.update(self.all, total=total)
        if not self.console.is_terminal:
            self.console.print(f"[{index + 1}/{total}] {unit.title}", markup=False)
        return _Row(self, self.progress.add_task(unit.title, total=None, note=""))

    def warned(self, message: str) -> None:
        """Something a reader of the results should know."""
        self.console.print(message, markup=False)


class _Row:
    """One run under way."""

    def __init__(self, table: BenchProgress, task: TaskID) -> None:
        self.table, self.task = table, task

    def started(self, steps: int, done: int) -> None:
        self.table.progress.reset(self.task, total=steps, completed=done)

    def stepped(self, images: int, parts: dict[str, float]) -> None:
        note = f"loss {parts['loss']:.3f}, accuracy {parts['accuracy']:.2f}"
        self.table.progress.update(self.task, advance=1, note=note)

    def finished_epoch(self, row: dict[str, float]) -> None: ...

    def evaluating(self, detector: str) -> None:
        self.table.progress.update(self.task, note=f"scoring with {detector}")

    def ended(self) -> None:
        self.table.progress.remove_task(self.task)
        self.table.progress.advance(self.table.all)
