"""How a benchmark goes, in one line that changes or, without a terminal, in a few that do not."""

from typing import Any

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

from dpn_plugin.bench import Unit

__all__ = ["BenchProgress"]


class BenchProgress:
    """Shows the units, the steps of the one that trains, and its detectors."""

    def __init__(self) -> None:
        self.console = Console(stderr=True)
        self.progress = Progress(
            TextColumn("{task.description}"),
            BarColumn(),
            MofNCompleteColumn(),
            TimeRemainingColumn(),
            TextColumn("{task.fields[note]}"),
            console=self.console,
            disable=not self.console.is_terminal,
        )
        self.units = self.progress.add_task("runs", total=None, note="")
        self.steps = self.progress.add_task("steps", total=None, note="", visible=False)

    def __enter__(self) -> "BenchProgress":
        self.progress.start()
        return self

    def __exit__(self, *problem: Any) -> None:
        self.progress.stop()

    def unit_started(self, index: int, total: int, unit: Unit) -> None:
        name = f"{unit.config.backbone} {unit.config.method} seed {unit.config.seed}"
        self.progress.update(self.units, total=total, completed=index, note=name)
        self.progress.update(self.steps, visible=False)
        if not self.console.is_terminal:
            self.console.print(f"[{index + 1}/{total}] {name}", markup=False)

    def started(self, steps: int, done: int) -> None:
        self.progress.reset(self.steps, total=steps, completed=done, visible=True, note="")

    def stepped(self, images: int, parts: dict[str, float]) -> None:
        note = f"loss {parts['loss']:.3f}, accuracy {parts['accuracy']:.2f}"
        self.progress.update(self.steps, advance=1, note=note)

    def finished_epoch(self, row: dict[str, float]) -> None: ...

    def evaluating(self, unit: Unit, detector: str) -> None:
        self.progress.update(self.steps, visible=True, note=f"scoring with {detector}")

    def warned(self, message: str) -> None:
        self.console.print(message, markup=False)
