"""What carries out the runs of a plan, what it returns, and who receives its progress."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol

from dpn_plugin.bench.planned_run import PlannedRun
from dpn_plugin.evaluation import EvaluationRecord
from dpn_plugin.training import TrainingMonitor

if TYPE_CHECKING:
    from dpn_plugin.bench.benchmark import Benchmark


class RunMonitor(TrainingMonitor, Protocol):
    """Receives progress events of one run."""

    def evaluating(self, detector: str) -> None:
        """The evaluation with a detector starts."""

    def ended(self) -> None:
        """The run is done, or cannot be carried out."""


class BenchMonitor(Protocol):
    """Receives progress events of a benchmark."""

    def start_run(self, index: int, total: int, run: PlannedRun) -> RunMonitor:
        """A run starts; several can be under way. Return the monitor of this run."""

    def on_warning(self, message: str) -> None:
        """Show something that a reader of the results should know."""


@dataclass(frozen=True)
class RunResult:
    """
    How a run ended.

    :param index: of the run, in the plan's order
    :param evaluation: its figures, if it could be carried out
    :param reason: why it could not
    """

    index: int
    evaluation: EvaluationRecord | None = None
    reason: str | None = None


class Executor(Protocol):
    """Carries out all runs of a plan, in any order."""

    def execute(self, benchmark: "Benchmark", monitor: BenchMonitor) -> Iterator[RunResult]:
        """Return the result of every run, as it ends."""

    def slots(self) -> int:
        """Return how many runs are carried out at a time, as far as that is known here."""
