"""What ``dpn bench`` prints: the plan, the leaderboard, and what was not run."""

from pathlib import Path
from typing import TYPE_CHECKING

import typer

from dpn_plugin.cli.output import print_table

if TYPE_CHECKING:  # imports torch
    from dpn_plugin.bench import Cost, Executor, Plan, PlannedRun, SuiteData

_LEADERBOARD_ROWS = 15


def print_plan(plan: "Plan", executor: "Executor", *, timed: bool = True) -> None:
    """
    Print what a benchmark would do: its runs, what is shared or cannot be run, and what it costs.

    :param plan: the plan
    :param executor: carries out the runs
    :param timed: whether to time a few batches of every network
    """
    from dpn_plugin.bench import (
        check_plan,
        count_trainings,
        describe_resizings,
        load_suite_data,
    )
    from dpn_plugin.evaluation import scorer_names
    from dpn_plugin.runs import method_of

    rows = []
    for run in plan.runs:
        config = run.config
        wanted = scorer_names(method_of(config), plan.detectors)
        missing = run.find_missing(plan.detectors, plan.tune)
        left = f"{len(missing)} of {len(wanted)} detectors" if missing else "reuse"
        key = config.backbone, run.method, str(config.seed)
        rows.append([*key, _describe_training(run, plan), left])
    columns = ["backbone", "method", "seed", "training", "evaluation"]
    print_table(f"{plan.suite.title}: {len(plan.runs)} runs", columns, rows)
    networks, trained = count_trainings(plan.runs)
    if trained < networks:
        typer.echo(f"{networks} networks, {trained} trainings: equal ones are trained once.")
    pending = [each.text for each in plan.find_pending()]
    for search in plan.searches:
        state = "Search first, in one process" if search.text in pending else "Searched before"
        typer.echo(f"{state}: {search.text}")
    typer.echo(f"Detectors: {', '.join(plan.detectors)}")
    for group, sets in {**plan.suite.groups, "shift": plan.suite.shift}.items():
        if sets:
            typer.echo(f"Test sets, {group}: {', '.join(sets)}")
    for each in plan.not_run:
        typer.echo(f"Left out: {each.method}; {each.reason}.")
    data = load_suite_data(plan.without_cache(), plan.skip_missing)
    for name, reason in data.skipped.items():
        typer.echo(f"Not run: test set {name}: {reason}")
    for sentence in describe_resizings(plan, data):
        typer.echo(f"Resized: {sentence}")
    for each in check_plan(plan, data):
        what = each.method or f"{each.detector or 'all'} on {each.backbone}"
        typer.echo(f"Not run: {what}: {each.reason}")
    print_cost(plan.without_sets(data.skipped), data, executor, timed=timed)


def print_cost(plan: "Plan", data: "SuiteData", executor: "Executor", *, timed: bool) -> None:
    """
    Print what a plan costs, by run and in total, and whether it does not fit.

    :param plan: the plan
    :param data: of its suite
    :param executor: carries out the runs
    :param timed: whether to time a few batches of every network
    """
    from dpn_plugin.bench import estimate_plan, why_too_large

    cost = estimate_plan(plan, data, timed=timed)
    keys = [[each.config.backbone, each.method, str(each.config.seed)] for each in plan.runs]
    named = list(zip(keys, cost.runs, strict=True))
    if cost.shared.images:
        named.append((["features of frozen networks", "", ""], cost.shared))
    rows = [
        [*key, *_cost_cells(each, timed)] for key, each in [*named, (["all", "", ""], cost.total)]
    ]
    columns = ["backbone", "method", "seed", "images", "passes", "time", "disk", "memory"]
    print_table("Estimated cost", columns, rows)
    slots = executor.slots()
    if timed and slots > 1:
        typer.echo(f"{slots} runs at a time: {_duration(cost.seconds_with(slots))}")
    typer.echo(f"Images in memory or in the cache: {_size(cost.data)}")
    for sentence in why_too_large(cost, plan.out, slots):
        typer.echo(f"Does not fit: {sentence}")


def _cost_cells(cost: "Cost", timed: bool) -> list[str]:
    if not cost.images:
        return ["-"] * 5
    seconds, memory = _duration(cost.seconds), _size(cost.memory)
    counts = [f"{cost.images:,.0f}", f"{cost.forwards:,.0f}"]
    return [*counts, seconds if timed else "-", _size(cost.disk), memory if cost.memory else "-"]


def _duration(seconds: float) -> str:
    if seconds < 120:
        return f"{seconds:.0f} s"
    return f"{seconds / 60:.0f} min" if seconds < 7200 else f"{seconds / 3600:.1f} h"


def _size(count: int) -> str:
    return f"{count / 1e6:.1f} MB" if count < 1e9 else f"{count / 1e9:.1f} GB"


def _describe_training(run: "PlannedRun", plan: "Plan") -> str:
    """Return what is left to train, and which networks are copied from another run."""
    from dpn_plugin.runs import method_of

    state = run.find_training_state()
    if state == "reuse" or not run.shared:
        return state
    owners = dict.fromkeys(plan.runs[index].method for index in run.shared.values())
    networks = len(method_of(run.config).trained_networks)
    rest = networks - len(run.shared)
    return f"{state} {rest} of {networks}" if rest else f"copy {', '.join(owners)}"


def print_leaderboard(out: Path) -> None:
    """Print the best rows of ``leaderboard.csv``."""
    import pandas as pd

    table = pd.read_csv(out / "leaderboard.csv")
    shown = table.head(_LEADERBOARD_ROWS)
    columns = ["backbone", "method", "detector", "Near-OOD AUROC", "Far-OOD AUROC", "ID ACC"]
    rows = [[_cell(value) for value in row] for row in shown[columns].itertuples(index=False)]
    print_table("Best by far-OOD AUROC (percent, mean over seeds)", columns, rows)
    if len(shown) < len(table):
        typer.echo(f"{len(shown)} of {len(table)} rows; all are in {out / 'leaderboard.csv'}.")


def print_not_run(out: Path) -> None:
    """Print what has no figures and why, one line for each reason."""
    from dpn_plugin.bench import read_bench_record

    # detectors and seeds that have a reason in common, in order
    groups: dict[tuple[str, str], tuple[dict[str, None], dict[str, None]]] = {}
    for each in read_bench_record(out).not_run:
        where = " ".join(filter(None, (each.detector and "on", each.method, each.dataset)))
        detectors, seeds = groups.setdefault((where, each.reason), ({}, {}))
        detectors[each.detector or ""] = seeds[str(each.seed)] = None
    for (where, reason), (detectors, seeds) in groups.items():
        title = " ".join(filter(None, (", ".join(detectors), where)))
        runs = f" ({len(seeds)} runs)" if len(seeds) > 1 else ""
        typer.echo(f"Not run: {title}{runs}: {reason}")


def _cell(value: object) -> str:
    if not isinstance(value, float):
        return str(value)
    return "-" if value != value else f"{value:.2f}"
