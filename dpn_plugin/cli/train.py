"""``dpn train``: train a backbone with a method and write a run's folder."""

import logging
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from dpn_plugin.cli.output import (
    DATA_ROOT,
    CacheMemoryOption,
    DataRootOption,
    FreezeOption,
    JsonOption,
    LoadersOption,
    PretrainedOption,
    WeightsOption,
    WorkersOption,
    is_primary,
    print_json,
    print_note,
    use_threads,
)
from dpn_plugin.cli.parsing import SOURCE_HELP, assignments, byte_count
from dpn_plugin.cli.progress import training_progress
from dpn_plugin.errors import UserError

if TYPE_CHECKING:
    from dpn_plugin.runs import TrainConfig, TrainedRun

_FROM_RECIPE = "recipe's own"
_MOST_SEED = 2**32 - 1


def train(
    backbone: Annotated[str, typer.Option(help="A timm id: dpn list backbones '*'.")],
    method: Annotated[str, typer.Option(help="A training method: dpn list methods.")],
    in_domain: Annotated[str, typer.Option(metavar="SOURCE", help=SOURCE_HELP)],
    out: Annotated[Path, typer.Option(metavar="DIR", help="The run's folder.")],
    outliers: Annotated[
        list[str] | None,
        typer.Option(metavar="SOURCE", help="OOD data to train with; may be given repeatedly."),
    ] = None,
    recipe: Annotated[str, typer.Option(help="c10, c100, tim, synthetic or small.")] = "small",
    epochs: Annotated[int | None, typer.Option(min=1, show_default=_FROM_RECIPE)] = None,
    seed: Annotated[
        int, typer.Option(min=0, max=_MOST_SEED, help="Decides the weights, bit for bit.")
    ] = 0,
    device: Annotated[str, typer.Option(help="cpu, cuda, cuda:1, mps or auto.")] = "auto",
    workers: WorkersOption = None,
    loaders: LoadersOption = None,
    cache_memory: CacheMemoryOption = None,
    limit: Annotated[int | None, typer.Option(min=1, help="Samples of each source.")] = None,
    image_size: Annotated[
        int | None, typer.Option(min=1, help="Pixels along a side.", show_default=_FROM_RECIPE)
    ] = None,
    batch_size: Annotated[int | None, typer.Option(min=1, show_default=_FROM_RECIPE)] = None,
    lr: Annotated[float | None, typer.Option(show_default=_FROM_RECIPE)] = None,
    stem: Annotated[str, typer.Option(help="auto, default or small.")] = "auto",
    pretrained: PretrainedOption = False,
    weights: WeightsOption = None,
    freeze: FreezeOption = False,
    init_from: Annotated[
        str | None, typer.Option(help="A method that trains the weights to start from: baseline.")
    ] = None,
    option: Annotated[
        list[str] | None,
        typer.Option("--option", "-o", metavar="KEY=VALUE", help="Of the method: lambda_out=0."),
    ] = None,
    set_: Annotated[
        list[str] | None,
        typer.Option("--set", metavar="KEY=VALUE", help="Of the recipe: calibration=0.1."),
    ] = None,
    data_root: DataRootOption = DATA_ROOT,
    force: Annotated[bool, typer.Option(help="Replace another run in DIR.")] = False,
    as_json: JsonOption = False,
) -> None:
    """
    Train a backbone with a method by name.

    If it is stopped or killed, the same command continues. torchrun starts several processes. Signs
    that nothing was learned (a loss that did not fall, an accuracy as by guessing, scores that
    hardly vary) are reported at the end. With --pretrained or --weights, images are prepared as the
    network's own configuration says, at its own size unless --image-size is given.
    """
    from dpn_plugin import training
    from dpn_plugin.backbones import WeightsFile
    from dpn_plugin.data import SourceSpec, StorageOptions
    from dpn_plugin.evaluation import collect_warnings
    from dpn_plugin.runs import Recipe, TrainConfig

    if pretrained and weights is not None:
        raise UserError("--pretrained and --weights cannot be given together.")
    given = {"epochs": epochs, "image_size": image_size, "batch_size": batch_size, "lr": lr}
    given |= assignments(set_ or (), "--set")
    if freeze:
        given["freeze"] = True
    config = TrainConfig(
        backbone=backbone,
        method=method,
        in_domain=SourceSpec.from_text(in_domain, "--in-domain", limit),
        outliers=tuple(SourceSpec.from_text(each, "--outliers", limit) for each in outliers or ()),
        recipe=Recipe.named(recipe, **given),
        stem=stem,
        pretrained=pretrained,
        weights=None if weights is None else WeightsFile.at(weights),
        network_size=given["image_size"] if pretrained or weights else None,
        init_from=init_from,
        options=_options(option or []),
        seed=seed,
    )
    memory = byte_count(cache_memory, "--cache-memory")
    storage = StorageOptions(memory=memory, workers=loaders)
    _note_ignored_outliers(config)
    use_threads(workers)
    with training_progress() as monitor, _printed_log(), collect_warnings(_print_warning):
        run = training.train(
            config,
            out,
            root=data_root,
            device=device,
            force=force,
            monitor=monitor,
            storage=storage,
        )
    if is_primary():
        _print_summary(run, as_json)


def _note_ignored_outliers(config: "TrainConfig") -> None:
    from dpn_plugin.runs import method_of

    if config.outliers and not method_of(config).needs_outliers and is_primary():
        names = ", ".join(each.name for each in config.outliers)
        print_note(f"The method {config.method!r} trains without outliers: {names} is not used.")


class _Notes(logging.Handler):
    """Prints log records as remarks."""

    def emit(self, record: logging.LogRecord) -> None:
        print_note(record.getMessage())


@contextmanager
def _printed_log() -> Iterator[None]:
    """Within the block, print what this package logs."""
    log, notes = logging.getLogger(__name__.partition(".")[0]), _Notes(logging.INFO)
    before = log.level
    log.addHandler(notes)
    log.setLevel(logging.INFO)
    try:
        yield
    finally:
        log.removeHandler(notes)
        log.setLevel(before)


def _options(items: list[str]) -> dict[str, Any]:
    table = assignments(items, "--option")
    for key, value in table.items():
        if isinstance(value, dict):
            raise typer.BadParameter(f"{key!r} has no options of its own", param_hint="--option")
    return table


def _print_warning(message: str) -> None:
    if is_primary():
        typer.echo(f"Warning: {message}", err=True)


def _print_summary(run: "TrainedRun", as_json: bool) -> None:
    from dpn_plugin.runs import diagnose

    networks, problems = run.record.networks, diagnose(run)
    if as_json:
        best_of = {name: network.selected for name, network in networks.items()}
        selected = {name: best and best.model_dump() for name, best in best_of.items()}
        print_json({"run": str(run.folder), "selected": selected, "warnings": problems})
        return
    for name, network in networks.items():
        best = network.selected
        if best is None:
            typer.echo(f"{name}: used as it was given, without training")
            continue
        typer.echo(
            f"{name}: accuracy {best.held_out_accuracy:.4f} on held-out data (epoch "
            f"{best.epoch}, {network.seconds:.0f} s)"
        )
    written = [name for name in ("history.csv", "curves.png") if name in run.record.files]
    typer.echo(f"{', '.join(['weights', 'run.json', *written])} are in {run.folder}")
    for problem in problems:
        typer.echo(f"Warning: {problem}", err=True)
