"""Suite file -> plan -> runs -> results."""

import fcntl
import os
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Protocol

import torch

from dpn_plugin.bench.data import TestData, load_test_data
from dpn_plugin.bench.evaluate import evaluate
from dpn_plugin.bench.notices import Notices, noticed
from dpn_plugin.bench.outputs import RunOutputs
from dpn_plugin.bench.paper import against_paper
from dpn_plugin.bench.plan import Plan
from dpn_plugin.bench.record import write_bench_record
from dpn_plugin.bench.results import leaderboard, results_table, write_table
from dpn_plugin.bench.unit import Unit
from dpn_plugin.data import Library
from dpn_plugin.errors import UserError
from dpn_plugin.files import cannot_write
from dpn_plugin.outputs import OutputStore
from dpn_plugin.training import Run, open_run, train
from dpn_plugin.training.loop import Monitor
from dpn_plugin.training.material import Material, load_material
from dpn_plugin.training.processes import Processes
from dpn_plugin.training.record import write_record
from dpn_plugin.training.run import method_of

__all__ = ["BenchMonitor", "run_plan"]


class BenchMonitor(Monitor, Protocol):
    """Who wants to know how a benchmark goes."""

    def unit_started(self, index: int, total: int, unit: Unit) -> None:
        """A unit begins."""

    def evaluating(self, unit: Unit, detector: str) -> None:
        """A detector of a unit begins."""

    def warned(self, message: str) -> None:
        """Something a reader of the results should know."""


def run_plan(
    plan: Plan,
    out: Path,
    *,
    root: Path,
    monitor: BenchMonitor,
    device: str = "auto",
    command: str = "",
) -> None:
    """
    Do what is missing, and write ``results.csv``, ``leaderboard.csv`` and ``bench.json``. Files
    whose content stays the same are left alone.

    :param plan: what to do
    :param out: the folder of the benchmark
    :param root: the folder of downloaded data sets
    :param monitor: is told of every unit, step and detector
    :param device: ``"cpu"``, ``"cuda"``, ... or ``"auto"``
    :param command: the words that started it, for the record
    :raises UserError: if another process works in the folder, data is missing, or nothing can run
    """
    started = datetime.now(UTC).isoformat(timespec="seconds")
    place = _place(device)
    with _only_writer(out), noticed(monitor.warned) as notices:
        _tell_left_out(plan, notices)
        library = Library(root, plan.base)
        data = load_test_data(plan, library)
        session = _Session(plan, data, library, OutputStore(out / "store"), place, monitor, notices)
        evaluations, failed = session.run()
        _write_tables(plan, evaluations, out)
        facts = {"command": command, "device": str(place), "started": started}
        write_bench_record(out, plan, data, evaluations, failed, facts)


@dataclass(frozen=True)
class _Session:
    plan: Plan
    data: TestData
    library: Library
    store: OutputStore
    device: torch.device
    monitor: BenchMonitor
    notices: Notices

    def run(self) -> tuple[list[dict[str, Any]], list[dict[str, Any]]]:
        """:return: the evaluations, and the units that have none, with reasons"""
        evaluations, failed = [], []
        for index, unit in enumerate(self.plan.units):
            self.monitor.unit_started(index, len(self.plan.units), unit)
            try:
                evaluations.append(self._evaluated(unit))
            except UserError as error:
                failed.append({**unit.key, "reason": str(error)})
                self.notices.add(f"{unit.title} is not run: {error}")
        if not evaluations:
            raise UserError(f"Nothing could be run. {failed[0]['reason']}")
        return evaluations, failed

    def _evaluated(self, unit: Unit) -> dict[str, Any]:
        if damage := unit.damage:
            self._discard(unit, damage)
        material = load_material(unit.config, method_of(unit.config), self.library)
        run = self._trained(unit, material)
        outputs = RunOutputs(run, self.store, self.data, material, self.device)
        found = evaluate(
            outputs,
            unit.scorers(self.plan.detectors),
            unit.folder,
            tuned=self.plan.tune,
            notices=self.notices,
            told=lambda name: self.monitor.evaluating(unit, name),
        )
        if unit.trained is None:
            _note_costs(run, found)
        return found

    def _trained(self, unit: Unit, material: Material) -> Run:
        if unit.trained is not None:
            run = open_run(unit.trained)
        else:
            run = train(
                unit.config,
                unit.folder,
                device=str(self.device),
                monitor=self.monitor,
                material=material,
            )
        if run.record["data"] != material.fingerprints():
            raise UserError(
                f"The data is not what the run in {run.folder} was trained on, though it has the "
                "same name. Use another --out, or bring back the data."
            )
        return run

    def _discard(self, unit: Unit, damage: str) -> None:
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


def _write_tables(plan: Plan, evaluations: list[dict[str, Any]], out: Path) -> None:
    results = results_table(plan.name, evaluations)
    write_table(out / "results.csv", results)
    write_table(out / "leaderboard.csv", leaderboard(results))
    if plan.suite.paper_task is not None:
        write_table(out / "comparison.csv", against_paper(results, plan.suite.paper_task))


def _tell_left_out(plan: Plan, notices: Notices) -> None:
    reasons = dict.fromkeys(row["reason"] for row in plan.not_run)
    for reason in reasons:
        methods = [row["method"] for row in plan.not_run if row["reason"] == reason]
        notices.add(f"Left out: {', '.join(methods)}; {reason}.")


def _place(device: str) -> torch.device:
    processes = Processes.join(device)
    if processes.world > 1:
        raise UserError(
            "dpn bench is one process. Train with torchrun and dpn train, then evaluate the run "
            "with dpn bench --only-eval."
        )
    return processes.device


@contextmanager
def _only_writer(out: Path) -> Iterator[None]:
    try:
        out.mkdir(parents=True, exist_ok=True)
        lock = os.open(out / ".lock", os.O_RDWR | os.O_CREAT, 0o666)
    except OSError as error:
        raise cannot_write(out, error) from error
    try:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        yield
    except BlockingIOError:
        raise UserError(
            f"Another dpn bench is at work in {out}. Wait for it, or use another --out."
        ) from None
    finally:
        os.close(lock)
