"""``dpn bench``: a whole comparison of methods and detectors."""

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from dpn_plugin.cli.bench_tables import print_leaderboard, print_not_run, print_plan
from dpn_plugin.cli.output import (
    DATA_ROOT,
    CacheMemoryOption,
    DataRootOption,
    FreezeOption,
    LoadersOption,
    PretrainedOption,
    WeightsOption,
    WorkersOption,
    print_note,
    use_threads,
)
from dpn_plugin.cli.parsing import byte_count, names
from dpn_plugin.errors import UserError, unknown_name

if TYPE_CHECKING:
    from dpn_plugin.bench import Executor

_EXECUTORS = ("local", "ray")


def bench(
    suite: Annotated[str, typer.Argument(help="Name of a suite, or the path of a suite file.")],
    backbone: Annotated[
        str, typer.Option(help="One or several timm ids, separated by commas.")
    ] = "",
    methods: Annotated[
        str,
        typer.Option(
            help="Training methods, separated by commas; with options as in dpn-minus:lambda_out=0."
        ),
    ] = "",
    detectors: Annotated[
        str,
        typer.Option(
            help="Detectors, separated by commas; wildcards, 'all', or some combined on their "
            "p-values: fisher(dpn-mi,knn)."
        ),
    ] = "",
    seeds: Annotated[int | None, typer.Option(min=1, help="Number of runs of each method.")] = None,
    epochs: Annotated[int | None, typer.Option(min=1, help="Epochs of training.")] = None,
    pretrained: PretrainedOption = False,
    weights: WeightsOption = None,
    freeze: FreezeOption = False,
    limit: Annotated[
        int | None, typer.Option(min=1, help="Use at most this many samples of every data set.")
    ] = None,
    fit_samples: Annotated[
        int | None,
        typer.Option(min=1, help="Fit detectors to at most this many training samples."),
    ] = None,
    data_root: DataRootOption = DATA_ROOT,
    out: Annotated[
        Path | None, typer.Option(help="Folder of the results; runs/SUITE if left out.")
    ] = None,
    device: Annotated[str, typer.Option(help="cpu, cuda, cuda:1, ... or auto.")] = "auto",
    workers: WorkersOption = None,
    loaders: LoadersOption = None,
    cache_memory: CacheMemoryOption = None,
    jobs: Annotated[
        int, typer.Option(min=1, max=1024, help="Runs at a time, each in its own process.")
    ] = 1,
    tune: Annotated[
        bool, typer.Option("--tune", help="Search detectors' hyper-parameters on held-out data.")
    ] = False,
    again: Annotated[
        str,
        typer.Option(help="Methods to train and detectors to evaluate again, separated by commas."),
    ] = "",
    only_asked: Annotated[
        bool,
        typer.Option(
            "--only-asked", help="Write results of what is asked for only, not of all runs in DIR."
        ),
    ] = False,
    skip_missing: Annotated[
        bool, typer.Option("--skip-missing", help="Go on without OOD test sets that are missing.")
    ] = False,
    only_eval: Annotated[
        Path | None, typer.Option(help="Evaluate this trained run, and train nothing.")
    ] = None,
    executor: Annotated[
        str, typer.Option(help="Where runs are carried out: local, or ray for a cluster.")
    ] = "local",
    ray_address: Annotated[
        str | None, typer.Option(help="A running Ray cluster; one is started here if left out.")
    ] = None,
    ray_gpus: Annotated[
        float | None, typer.Option(min=0, help="GPUs of each run; 1 if the cluster has any.")
    ] = None,
    ray_scratch: Annotated[
        bool,
        typer.Option("--ray-scratch", help="Work in scratch folders and copy the files back."),
    ] = False,
    dry_run: Annotated[
        bool,
        typer.Option(
            "--dry-run",
            help="Show what would be done and what it costs (a few batches are timed), and do "
            "nothing.",
        ),
    ] = False,
    no_timing: Annotated[
        bool, typer.Option("--no-timing", help="With --dry-run: time nothing, and show no times.")
    ] = False,
    open_: Annotated[
        bool, typer.Option("--open", help="Open the report in the browser at the end.")
    ] = False,
) -> None:
    """Train and compare methods and detectors on a suite of data sets."""
    from dpn_plugin.bench import Request, join_options, make_plan, run_benchmark
    from dpn_plugin.cli.progress import BenchProgress

    out = out or Path("runs") / (Path(suite).stem.strip(".") or "suite")
    request = Request(
        suite=suite,
        out=out,
        backbones=names(backbone),
        methods=join_options(names(methods)),
        detectors=names(detectors),
        seeds=seeds,
        epochs=epochs,
        pretrained=pretrained,
        weights=weights,
        freeze=freeze,
        limit=limit,
        fit_samples=fit_samples,
        tune=tune,
        again=join_options(names(again)),
        only_asked=only_asked,
        only_eval=only_eval,
        skip_missing=skip_missing,
        data_root=data_root,
        device=device,
        cache_memory=byte_count(cache_memory, "--cache-memory"),
        loaders=loaders,
    )
    plan = make_plan(request)
    chosen = make_executor(
        executor,
        jobs=jobs,
        threads=workers,
        address=ray_address,
        gpus=ray_gpus,
        scratch=ray_scratch,
    )
    use_threads(workers if jobs == 1 and executor == "local" else workers or 1)
    if dry_run:
        print_plan(plan, chosen, timed=not no_timing)
        return
    with BenchProgress() as progress:
        command = " ".join(["dpn", *sys.argv[1:]])
        wrote_results = run_benchmark(plan, chosen, progress, command)
    if wrote_results:
        report = _update_report(out)
        print_leaderboard(out)
        print_not_run(out)
        typer.echo(f"Results: {out / 'results.csv'}\nReport:  {report}")
        if open_:
            _open_in_browser(report)


def make_executor(
    name: str,
    *,
    jobs: int = 1,
    threads: int | None = None,
    address: str | None = None,
    gpus: float | None = None,
    scratch: bool = False,
) -> "Executor":
    """
    Return the executor that the options ask for.

    :param name: ``local`` or ``ray``
    :param jobs: runs at a time, on this machine
    :param threads: CPUs of each run
    :param address: of a Ray cluster
    :param gpus: of each run on a Ray cluster
    :param scratch: whether its workers use folders of their own
    :raises UserError: for another name, or options of another executor
    """
    from dpn_plugin.bench import LocalExecutor, PoolExecutor, RayExecutor

    if name not in _EXECUTORS:
        raise unknown_name("executor", name, _EXECUTORS)
    if name == "ray":
        if jobs > 1:
            raise UserError("--jobs belongs to --executor local; Ray fills its cluster by itself.")
        return RayExecutor(address, threads or 1, gpus, scratch)
    if address is not None or gpus is not None or scratch:
        raise UserError("--ray-address, --ray-gpus and --ray-scratch belong to --executor ray.")
    if jobs > 1:
        return PoolExecutor(jobs, threads or 1)
    return LocalExecutor()


def _update_report(out: Path) -> Path:
    from dpn_plugin.report import update_report

    return update_report(out)


def _open_in_browser(report: Path) -> None:
    import webbrowser

    if not webbrowser.open(report.resolve().as_uri()):
        print_note("There is no browser to open the report with; BROWSER can name one.")
