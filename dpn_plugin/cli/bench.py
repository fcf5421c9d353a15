"""``dpn bench``: a whole comparison of methods and detectors."""

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from dpn_plugin.cli.output import print_table
from dpn_plugin.cli.threads import WorkersOption, use_threads

if TYPE_CHECKING:
    from dpn_plugin.bench import Plan

__all__ = ["bench"]


def bench(
    suite: Annotated[str, typer.Argument(help="Name of a suite, or the path of a suite file.")],
    backbone: Annotated[
        str, typer.Option(help="One or several timm ids, separated by commas.")
    ] = "",
    methods: Annotated[str, typer.Option(help="Training methods, separated by commas.")] = "",
    detectors: Annotated[
        str, typer.Option(help="Detectors, separated by commas; wildcards or 'all'.")
    ] = "",
    seeds: Annotated[int | None, typer.Option(min=1, help="Number of runs of each method.")] = None,
    epochs: Annotated[int | None, typer.Option(min=1, help="Epochs of training.")] = None,
    limit: Annotated[
        int | None, typer.Option(min=1, help="At most so many samples of every data set.")
    ] = None,
    data_root: Annotated[Path, typer.Option(help="Folder of downloaded data sets.")] = Path("data"),
    out: Annotated[
        Path | None, typer.Option(help="Folder of the results; runs/SUITE if left out.")
    ] = None,
    device: Annotated[str, typer.Option(help="cpu, cuda, cuda:1, ... or auto.")] = "auto",
    workers: WorkersOption = None,
    jobs: Annotated[
        int, typer.Option(min=1, max=1024, help="Runs at a time, each a process of its own.")
    ] = 1,
    tune: Annotated[
        bool, typer.Option("--tune", help="Search detectors' hyper-parameters on held-out data.")
    ] = False,
    only_eval: Annotated[
        Path | None, typer.Option(help="Evaluate this trained run, and train nothing.")
    ] = None,
    executor: Annotated[
        str, typer.Option(help="Who does the runs: local, or ray for a cluster.")
    ] = "local",
    ray_address: Annotated[
        str | None, typer.Option(help="A running Ray cluster; one is started here if left out.")
    ] = None,
    ray_gpus: Annotated[
        float | None, typer.Option(min=0, help="GPUs of each run; 1 if the cluster has any.")
    ] = None,
    ray_scratch: Annotated[
        bool,
        typer.Option("--ray-scratch", help="Work in scratch folders and bring the files home."),
    ] = False,
    dry_run: Annotated[
        bool, typer.Option("--dry-run", help="Show what would be done, and do nothing.")
    ] = False,
) -> None:
    """Train and compare methods and detectors on a suite of data sets."""
    from dpn_plugin.bench import Request, make_plan, plan_for_run, run_plan
    from dpn_plugin.cli.bench_progress import BenchProgress
    from dpn_plugin.cli.executors import make_executor

    request = Request(
        suite=suite,
        backbones=_names(backbone),
        methods=_names(methods),
        detectors=_names(detectors),
        seeds=seeds,
        epochs=epochs,
        limit=limit,
        tune=tune,
    )
    out = out or Path("runs") / (Path(suite).stem.strip(".") or "suite")
    plan = plan_for_run(request, only_eval, out) if only_eval else make_plan(request, out)
    if dry_run:
        _print_plan(plan)
        return
    doer = make_executor(
        executor,
        jobs=jobs,
        threads=workers,
        address=ray_address,
        gpus=ray_gpus,
        scratch=ray_scratch,
    )
    use_threads(workers)
    with BenchProgress() as progress:
        command = " ".join(["dpn", *sys.argv[1:]])
        wrote = run_plan(
            plan,
            out,
            root=data_root,
            monitor=progress,
            device=device,
            command=command,
            executor=doer,
        )
    if not wrote:
        return
    report = _report(out)
    _print_leaderboard(out)
    typer.echo(f"Results: {out / 'results.csv'}\nReport:  {report}")


def _names(text: str) -> tuple[str, ...]:
    return tuple(name.strip() for name in text.split(",") if name.strip())


def _report(out: Path) -> Path:
    from dpn_plugin.report import current_report

    return current_report(out)


def _print_plan(plan: "Plan") -> None:
    rows = []
    for unit in plan.units:
        scorers, missing = unit.scorers(plan.detectors), unit.missing(plan.detectors, plan.tune)
        todo = "reuse" if not missing else f"{len(missing)} of {len(scorers)} detectors"
        rows.append([*map(str, unit.key.values()), unit.training, todo])
    columns = ["backbone", "method", "seed", "training", "evaluation"]
    print_table(f"{plan.suite.title}: {len(plan.units)} runs", columns, rows)
    typer.echo(f"Detectors: {', '.join(plan.detectors)}")
    for row in plan.not_run:
        typer.echo(f"Left out: {row['method']}; {row['reason']}.")


def _print_leaderboard(out: Path) -> None:
    import pandas as pd

    table = pd.read_csv(out / "leaderboard.csv").head(15)
    columns = ["backbone", "method", "detector", "Near-OOD AUROC", "Far-OOD AUROC", "ID ACC"]
    rows = [[_cell(value) for value in row] for row in table[columns].itertuples(index=False)]
    print_table("Best by far-OOD AUROC (percent, mean over seeds)", columns, rows)


def _cell(value: object) -> str:
    if not isinstance(value, float):
        return str(value)
    return "-" if value != value else f"{value:.2f}"
