"""Suite file -> plan -> runs -> results."""

import fcntl
import os
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from dpn_plugin.bench.executor import BenchMonitor, Executor, LocalExecutor, Outcome
from dpn_plugin.bench.notices import Notices, noticed
from dpn_plugin.bench.paper import against_paper
from dpn_plugin.bench.plan import Plan
from dpn_plugin.bench.record import write_bench_record
from dpn_plugin.bench.results import leaderboard, results_table, write_table
from dpn_plugin.bench.workshop import Job, Supplies, Workshop
from dpn_plugin.errors import UserError
from dpn_plugin.files import cannot_write
from dpn_plugin.training import Stopped
from dpn_plugin.training.processes import Processes

__all__ = ["run_plan"]


def run_plan(
    plan: Plan,
    out: Path,
    *,
    root: Path,
    monitor: BenchMonitor,
    device: str = "auto",
    command: str = "",
    executor: Executor | None = None,
) -> bool:
    """
    Do what is missing, and write ``results.csv``, ``leaderboard.csv`` and ``bench.json``. Files
    whose content stays the same are left alone.

    :param plan: what to do
    :param out: the folder of the benchmark
    :param root: the folder of downloaded data sets
    :param monitor: is told of every unit, step and detector
    :param device: ``"cpu"``, ``"cuda"``, ... or ``"auto"``
    :param command: the words that started it, for the record
    :param executor: who does the units; this process if left out
    :return: whether this process wrote the results: of those that ``torchrun`` starts, one does
    :raises UserError: if another process works in the folder, data is missing, or nothing can run
    """
    started = datetime.now(UTC).isoformat(timespec="seconds")
    processes = Processes.join(device)
    with noticed(monitor.warned) as notices, _only_writer(out, processes):
        _tell_left_out(plan, notices)
        job = Job(plan, out, root, device)
        supplies = Supplies.of(job)
        workshop = Workshop(job, supplies, processes, notices)
        outcomes = _outcomes((executor or LocalExecutor()).run(workshop, monitor), plan, notices)
        if not processes.primary:
            return False
        failed = [{**plan.units[i].key, "reason": o.reason} for i, o in outcomes if o.reason]
        evaluations = [o.evaluation for _, o in outcomes if o.evaluation is not None]
        if not evaluations:
            raise UserError(f"Nothing could be run. {failed[0]['reason']}")
        _write_tables(plan, evaluations, out)
        facts = {"command": command, "device": str(processes.device), "started": started}
        write_bench_record(out, plan, supplies.data, evaluations, failed, facts)
        return True


def _outcomes(found: Iterable[Outcome], plan: Plan, notices: Notices) -> list[tuple[int, Outcome]]:
    """:return: the outcomes by number, in the plan's order; failures are told as they come"""
    outcomes = {}
    try:
        for each in found:
            outcomes[each.index] = each
            if each.reason is not None:
                notices.add(f"{plan.units[each.index].title} is not run: {each.reason}")
    except Stopped:
        raise
    except KeyboardInterrupt:  # between two runs, or in this process while others work
        raise Stopped("Stopped. The same command goes on from there.") from None
    return sorted(outcomes.items())


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


@contextmanager
def _only_writer(out: Path, processes: Processes) -> Iterator[None]:
    lock = processes.from_primary(lambda: _locked(out))
    try:
        yield
    finally:
        if processes.primary:
            os.close(lock)


def _locked(out: Path) -> int:
    try:
        out.mkdir(parents=True, exist_ok=True)
        lock = os.open(out / ".lock", os.O_RDWR | os.O_CREAT, 0o666)
    except OSError as error:
        raise cannot_write(out, error) from error
    try:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        os.close(lock)
        raise UserError(
            f"Another dpn bench is at work in {out}. Wait for it, or use another --out."
        ) from None
    return lock
