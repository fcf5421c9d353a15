"""The doing of one unit: train what is missing, then evaluate."""

import shutil
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol

from dpn_plugin.bench.data import TestData, load_test_data
from dpn_plugin.bench.evaluate import evaluate, sets_to_read
from dpn_plugin.bench.notices import Notices
from dpn_plugin.bench.outputs import RunOutputs
from dpn_plugin.bench.plan import Plan
from dpn_plugin.bench.unit import Unit
from dpn_plugin.data import Library
from dpn_plugin.errors import UserError
from dpn_plugin.outputs import OutputStore
from dpn_plugin.training import Run, open_run, train
from dpn_plugin.training.loop import Monitor
from dpn_plugin.training.material import Material, load_material
from dpn_plugin.training.processes import Processes
from dpn_plugin.training.record import write_record
from dpn_plugin.training.run import method_of

__all__ = ["Job", "Supplies", "UnitMonitor", "Workshop"]


class UnitMonitor(Monitor, Protocol):
    """Who wants to know how a unit goes."""

    def evaluating(self, detector: str) -> None:
        """A detector begins."""

    def ended(self) -> None:
        """The unit is done, or cannot be."""


@dataclass(frozen=True)
class Job:
    """
    What a process must know to do any unit of a plan; it can be sent to another machine.

    :param plan: what to do
    :param out: the folder of the benchmark
    :param root: the folder of downloaded data sets
    :param device: ``"cpu"``, ``"cuda"``, ... or ``"auto"``
    """

    plan: Plan
    out: Path
    root: Path
    device: str = "auto"


@dataclass(frozen=True)
class Supplies:
    """
    The data of a job, loaded once for all units.

    :param library: what training data comes from
    :param data: the test sets
    """

    library: Library
    data: TestData

    @classmethod
    def of(cls, job: Job) -> "Supplies":
        """:raises UserError: if data is missing or does not fit"""
        library = Library(job.root, job.plan.base)
        return cls(library, load_test_data(job.plan, library))


class Workshop:
    """
    Does units of a job, one at a time.

    :param job: what to do
    :param supplies: its data
    :param processes: this process and the others that do it together
    :param notices: where warnings arrive
    """

    def __init__(
        self, job: Job, supplies: Supplies, processes: Processes, notices: Notices
    ) -> None:
        self.job, self.supplies = job, supplies
        self.processes, self.notices = processes, notices
        self.store = OutputStore(job.out / "store")

    def evaluated(self, unit: Unit, monitor: UnitMonitor) -> dict[str, Any]:
        """
        :param unit: one of the plan's
        :param monitor: is told of every step and detector
        :return: the content of its ``evaluation.json``; of several processes, the primary knows it
        :raises UserError: if it cannot be run
        """
        self.processes.from_primary(lambda: self._discard_damaged(unit))
        material = load_material(unit.config, method_of(unit.config), self.supplies.library)
        run = self._trained(unit, material, monitor)
        outputs = RunOutputs(run, self.store, self.supplies.data, material, self.processes)
        plan = self.job.plan
        scored_with = unit.scorers(plan.detectors)
        outputs.share(lambda: sets_to_read(outputs, scored_with, unit.folder, plan.tune))
        if not self.processes.primary:
            return {}
        found = evaluate(
            outputs,
            scored_with,
            unit.folder,
            tuned=plan.tune,
            notices=self.notices,
            told=monitor.evaluating,
        )
        if unit.trained is None:
            _note_costs(run, found)
        return found

    def _trained(self, unit: Unit, material: Material, monitor: UnitMonitor) -> Run:
        if unit.trained is not None:
            run = open_run(unit.trained)
        else:
            device = str(self.processes.device)
            run = train(unit.config, unit.folder, device=device, monitor=monitor, material=material)
        if run.record["data"] != material.fingerprints():
            raise UserError(
                f"The data is not what the run in {run.folder} was trained on, though it has the "
                "same name. Use another --out, or bring back the data."
            )
        return run

    def _discard_damaged(self, unit: Unit) -> None:
        damage = unit.damage
        if damage is None:
            return
        if unit.trained is not None:
            raise UserError(f"{damage}; train the run again.")
        self.notices.add(f"{damage}; the run is trained again.")
        shutil.rmtree(unit.folder)


def _note_costs(run: Run, evaluation: dict[str, Any]) -> None:
    """Time and memory of every detector, for those who look into ``run.json``."""
    costs = {
        name: {"seconds": found["seconds"], "peak_memory": found["peak_memory"]}
        for name, found in evaluation["detectors"].items()
    }
    known = run.record.get("detectors", {})
    if known | costs != known:
        run.record["detectors"] = known | costs
        write_record(run.folder, run.record)
