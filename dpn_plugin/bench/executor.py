"""Who does the units of a plan: this process, one after the other, or somebody else."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, Protocol

from dpn_plugin.bench.unit import Unit
from dpn_plugin.bench.workshop import UnitMonitor, Workshop
from dpn_plugin.errors import CannotWrite, UserError

__all__ = ["BenchMonitor", "Executor", "LocalExecutor", "Outcome", "outcome"]


class BenchMonitor(Protocol):
    """Who wants to know how a benchmark goes."""

    def unit(self, index: int, total: int, unit: Unit) -> UnitMonitor:
        """A unit begins; several can be under way."""

    def warned(self, message: str) -> None:
        """Something a reader of the results should know."""


@dataclass(frozen=True)
class Outcome:
    """
    How a unit ended.

    :param index: of the unit, in the plan's order
    :param evaluation: the content of ``evaluation.json``, if it could be run
    :param reason: why it could not
    """

    index: int
    evaluation: dict[str, Any] | None = None
    reason: str | None = None


class Executor(Protocol):
    """Does all units of a plan, in any order."""

    def run(self, workshop: Workshop, monitor: BenchMonitor) -> Iterator[Outcome]:
        """
        :param workshop: the job, the data and, for those who work in this process, the tools
        :param monitor: is told of every unit
        :return: the outcome of every unit, as it ends
        """


class LocalExecutor:
    """One unit after the other, in this process."""

    def run(self, workshop: Workshop, monitor: BenchMonitor) -> Iterator[Outcome]:
        """See :meth:`Executor.run`."""
        units = workshop.job.plan.units
        for index, unit in enumerate(units):
            yield outcome(workshop, index, monitor.unit(index, len(units), unit))


def outcome(workshop: Workshop, index: int, monitor: UnitMonitor) -> Outcome:
    """
    :return: how the unit of this number ends here
    :raises CannotWrite: if the disk is full
    """
    try:
        return Outcome(index, workshop.evaluated(workshop.job.plan.units[index], monitor))
    except CannotWrite:
        raise  # a full disk is no matter of one unit
    except UserError as error:
        return Outcome(index, reason=str(error))
    finally:
        monitor.ended()
