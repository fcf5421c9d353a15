"""Units that are done in other processes: their rows in the progress, and their second chances."""

from dataclasses import dataclass, field
from typing import Any

from dpn_plugin.bench.executor import BenchMonitor, Outcome
from dpn_plugin.bench.notices import Notices
from dpn_plugin.bench.plan import Plan
from dpn_plugin.bench.workshop import UnitMonitor
from dpn_plugin.errors import CannotWrite

__all__ = ["TRIES", "Board"]

#: how often a unit is begun before it counts as failed
TRIES = 4


@dataclass
class Board:
    """
    Hears what the processes tell.

    :param plan: whose units are done
    :param monitor: is told of every unit
    :param notices: where warnings arrive
    """

    plan: Plan
    monitor: BenchMonitor
    notices: Notices
    rows: dict[int, UnitMonitor] = field(default_factory=dict, init=False)
    deaths: dict[int, int] = field(default_factory=dict, init=False)

    def begin(self, index: int) -> None:
        """A process takes the unit."""
        unit = self.plan.units[index]
        self.rows[index] = self.monitor.unit(index, len(self.plan.units), unit)

    def hear(self, index: int, kind: str, words: tuple[Any, ...]) -> Outcome | None:
        """
        :return: how the unit ended, if this was the last word about it
        :raises CannotWrite: if the disk is full there
        """
        if kind == "warned":
            self.notices.add(*words)
        elif kind == "end":
            return self.end(*words)
        elif kind == "full":
            raise CannotWrite(*words)
        elif kind == "raised":
            message, trace = words
            raise RuntimeError(f"{self.plan.units[index].title}: {message}\n{trace}")
        else:
            getattr(self.rows[index], kind)(*words)
        return None

    def end(self, found: Outcome) -> Outcome:
        """The unit is over; its row goes."""
        self.leave(found.index)
        return found

    def leave(self, index: int) -> None:
        """The process gave the unit back."""
        if index in self.rows:
            self.rows.pop(index).ended()

    def lose(self, index: int, why: str) -> Outcome | None:
        """
        The process died.

        :return: the unit's end, if that happened too often; else it is to be begun again
        """
        self.deaths[index] = self.deaths.get(index, 0) + 1
        if self.deaths[index] == TRIES:
            return self.end(Outcome(index, reason=f"its worker died {TRIES} times ({why})"))
        title = self.plan.units[index].title
        self.notices.add(f"The worker of {title} died ({why}); another one goes on.")
        self.leave(index)
        return None
