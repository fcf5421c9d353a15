"""Suite file -> plan -> runs -> results."""

import fcntl
import json
import time
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Protocol

from dpn_plugin.bench.data import TestData, load_test_data
from dpn_plugin.bench.evaluate import evaluate
from dpn_plugin.bench.outputs import RunOutputs
from dpn_plugin.bench.paper import against_paper
from dpn_plugin.bench.plan import Plan, Unit
from dpn_plugin.bench.results import leaderboard, results_table, write_table
from dpn_plugin.data import Library
from dpn_plugin.errors import UserError
from dpn_plugin.files import write_text
from dpn_plugin.outputs import OutputStore
from dpn_plugin.report import write_report
from dpn_plugin.training import train
from dpn_plugin.training.loop import Monitor
from dpn_plugin.training.material import load_material
from dpn_plugin.training.run import method_of

__all__ = ["BenchMonitor", "run_plan"]

FORMAT = 1


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
) -> Path:
    """
    Do what is missing, and write the results and the report.

    :param plan: what to do
    :param out: the folder of the benchmark
    :param root: the folder of downloaded data sets
    :param monitor: is told of every unit, step and detector
    :param device: ``"cpu"``, ``"cuda"``, ... or ``"auto"``
    :param command: the words that started it, for the record
    :return: the path of the report
    :raises UserError: if another process works in the folder, or data is missing
    """
    begun = time.monotonic()
    started = datetime.now(UTC).isoformat(timespec="seconds")
    with _only_writer(out):
        library = Library(root, plan.base)
        data = load_test_data(plan, library)
        evaluations = []
        for index, unit in enumerate(plan.units):
            monitor.unit_started(index, len(plan.units), unit)
            evaluations.append(_run_unit(unit, plan, data, library, out, device, monitor))
        results = results_table(plan.name, evaluations)
        write_table(out / "results.csv", results)
        write_table(out / "leaderboard.csv", leaderboard(results))
        if plan.suite.paper_task is not None:
            comparison = against_paper(results, plan.suite.paper_task)
            write_table(out / "comparison.csv", comparison)
        record = _record(plan, data, evaluations, out)
        record |= {"started": started, "seconds": round(time.monotonic() - begun, 1)}
        record["command"] = command
        write_text(out / "bench.json", json.dumps(record, indent=1) + "\n")
        return write_report([out])


def _run_unit(
    unit: Unit,
    plan: Plan,
    data: TestData,
    library: Library,
    out: Path,
    device: str,
    monitor: BenchMonitor,
) -> dict[str, Any]:
    material = load_material(unit.config, method_of(unit.config), library)
    run = train(unit.config, unit.folder, device=device, monitor=monitor, material=material)
    device = run.record["device"] if device == "auto" else device
    outputs = RunOutputs(run, OutputStore(out / "store"), data, material, device)
    told = lambda name: monitor.evaluating(unit, name)  # noqa: E731
    return evaluate(outputs, plan.detectors, tuned=plan.tune, told=told)


def _record(
    plan: Plan, data: TestData, evaluations: list[dict[str, Any]], out: Path
) -> dict[str, Any]:
    first = json.loads((plan.units[0].folder / "run.json").read_text("utf-8"))
    return {
        "format": FORMAT,
        "suite": plan.name,
        "title": plan.suite.title,
        "backbones": _distinct(unit.config.backbone for unit in plan.units),
        "methods": _distinct(unit.config.method for unit in plan.units),
        "detectors": list(plan.detectors),
        "seeds": _distinct(unit.config.seed for unit in plan.units),
        **data.described(plan),
        "versions": first["versions"],
        "device": first["device"],
        "warnings": list(plan.suite.notes),
        "not_run": _not_run(plan, evaluations),
    }


def _not_run(plan: Plan, evaluations: list[dict[str, Any]]) -> list[dict[str, Any]]:
    empty = {"backbone": None, "method": None, "seed": None, "detector": None, "dataset": None}
    rows = [{**empty, **row} for row in plan.not_run]
    for evaluation in evaluations:
        key = {name: evaluation[name] for name in ("backbone", "method", "seed")}
        for name, found in evaluation["detectors"].items():
            if found["reason"] is not None:
                rows.append({**empty, **key, "detector": name, "reason": found["reason"]})
    return rows


def _distinct(values: Iterator[Any]) -> list[Any]:
    return list(dict.fromkeys(values))


@contextmanager
def _only_writer(out: Path) -> Iterator[None]:
    out.mkdir(parents=True, exist_ok=True)
    with (out / ".lock").open("w") as lock:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            raise UserError(
                f"Another dpn bench is at work in {out}. Wait for it, or use another --out."
            ) from None
        yield
