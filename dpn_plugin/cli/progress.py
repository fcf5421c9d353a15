"""How training is shown: a live bar on a terminal, plain lines elsewhere."""

import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Protocol

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

from dpn_plugin.cli.output import is_primary

__all__ = ["training_progress"]

_SMOOTHING = 0.9


class _Monitor(Protocol):
    def started(self, steps: int, done: int) -> None: ...

    def stepped(self, images: int, parts: dict[str, float]) -> None: ...

    def finished_epoch(self, row: dict[str, float]) -> None: ...


@contextmanager
def training_progress() -> Iterator[_Monitor | None]:
    """:return: a monitor for ``train``; ``None`` in all processes but the first"""
    if not is_primary():
        yield None
    elif sys.stderr.isatty():
        bar = LiveBar()
        with bar.progress:
            yield bar
    else:
        yield PlainLines()


class LiveBar:
    """One bar for each network: parts of the loss, accuracy, images a second, time left."""

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
        """A network's training begins."""
        self._task = self.progress.add_task("", total=steps, completed=done)
        self._rate, self._last, self.held_out = 0.0, time.monotonic(), ""

    def stepped(self, images: int, parts: dict[str, float]) -> None:
        """Show the step."""
        now = time.monotonic()
        rate = images / max(now - self._last, 1e-9)
        self._rate = _SMOOTHING * self._rate + (1 - _SMOOTHING) * rate if self._rate else rate
        self._last = now
        described = f"{_losses(parts)} {self._rate:,.0f} images/s{self.held_out}"
        self.progress.update(self._task, advance=1, description=described)

    def finished_epoch(self, row: dict[str, float]) -> None:
        """Remember how the held-out data fared."""
        self.held_out = f" · held out {row['held_out_accuracy']:.3f}"
        self._last = time.monotonic()


class PlainLines:
    """A line for each epoch, for logs."""

    def started(self, steps: int, done: int) -> None:
        """Say how much there is to do."""
        self._print(f"{steps} steps" + (f", going on after step {done}" if done else ""))

    def stepped(self, images: int, parts: dict[str, float]) -> None:
        """Steps are not logged."""

    def finished_epoch(self, row: dict[str, float]) -> None:
        """Say how it went."""
        self._print(
            f"epoch {row['epoch']:.0f}: {_losses(row)}, held out: loss {row['held_out_loss']:.4f} "
            f"accuracy {row['held_out_accuracy']:.3f}, {row['images_per_second']:,.0f} images/s"
        )

    @staticmethod
    def _print(line: str) -> None:
        print(line, file=sys.stderr, flush=True)


def _losses(parts: dict[str, float]) -> str:
    loss = f"loss {parts['loss']:.4f}"
    if parts["loss_out"]:
        loss += f" ({parts['loss_in']:.4f} in, {parts['loss_out']:.4f} out)"
    return f"{loss} accuracy {parts['accuracy']:.3f}"
