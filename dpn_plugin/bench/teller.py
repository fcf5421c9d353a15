"""A unit that is done in another process, and what that process tells of it."""

import time
from collections.abc import Callable
from typing import Any

import torch

from dpn_plugin.bench.executor import Outcome, outcome
from dpn_plugin.bench.notices import noticed
from dpn_plugin.bench.workshop import Job, Supplies, Workshop
from dpn_plugin.errors import CannotWrite, UserError
from dpn_plugin.training.processes import Processes

__all__ = ["Word", "tell_unit"]

#: what is told, and its arguments: ``warned``, ``end``, ``full``, or a method of the unit's monitor
Word = tuple[str, tuple[Any, ...]]

_PAUSE = 0.5  # seconds between two words about steps

#: the data of one benchmark: a process serves one at a time
_kept: dict[str, Supplies] = {}


def tell_unit(
    job: Job, index: int, session: str, threads: int, tell: Callable[[Word], None]
) -> None:
    """
    Do a unit, and tell of it; the last word is ``end`` with its :class:`Outcome`, or ``full`` if
    the disk is.

    :param job: with paths that are right in this process
    :param index: of the unit
    :param session: names the benchmark: its data is kept from one unit to the next
    :param threads: that compute
    :param tell: takes the words
    """
    torch.set_num_threads(threads)
    with noticed(lambda message: tell(("warned", (message,)))) as notices:
        try:
            workshop = Workshop(job, _supplies(job, session), Processes.join(job.device), notices)
            tell(("end", (outcome(workshop, index, _Teller(tell)),)))
        except CannotWrite as error:
            tell(("full", (str(error),)))
        except UserError as error:
            tell(("end", (Outcome(index, reason=str(error)),)))


def _supplies(job: Job, session: str) -> Supplies:
    if session not in _kept:
        _kept.clear()
        _kept[session] = Supplies.of(job)
    return _kept[session]


class _Teller:
    """A unit's monitor that passes on what it is told; of steps, a few times a second."""

    def __init__(self, tell: Callable[[Word], None]) -> None:
        self.tell = tell
        self.steps, self.done, self.told = 0, 0, 0.0

    def started(self, steps: int, done: int) -> None:
        self.steps, self.done = steps, done
        self.tell(("started", (steps, done)))

    def stepped(self, images: int, parts: dict[str, float]) -> None:
        self.done += 1
        if time.monotonic() - self.told > _PAUSE or self.done == self.steps:
            self.told = time.monotonic()
            self.tell(("started", (self.steps, self.done - 1)))
            self.tell(("stepped", (images, parts)))

    def finished_epoch(self, row: dict[str, float]) -> None: ...

    def evaluating(self, detector: str) -> None:
        self.tell(("evaluating", (detector,)))

    def ended(self) -> None: ...
