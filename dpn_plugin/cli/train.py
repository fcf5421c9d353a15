"""``dpn train``: from a backbone, a method and data to a run's folder."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from dpn_plugin.cli.assignments import assignments
from dpn_plugin.cli.output import JsonOption, is_primary, print_json
from dpn_plugin.cli.progress import training_progress
from dpn_plugin.cli.sources import SOURCE_HELP, parse_source
from dpn_plugin.cli.threads import WorkersOption, use_threads

if TYPE_CHECKING:
    from dpn_plugin.training import Run

__all__ = ["train"]

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
    limit: Annotated[int | None, typer.Option(min=1, help="Samples of each source.")] = None,
    image_size: Annotated[
        int | None, typer.Option(min=1, help="Pixels along a side.", show_default=_FROM_RECIPE)
    ] = None,
    batch_size: Annotated[int | None, typer.Option(min=1, show_default=_FROM_RECIPE)] = None,
    lr: Annotated[float | None, typer.Option(show_default=_FROM_RECIPE)] = None,
    stem: Annotated[str, typer.Option(help="auto, default or small.")] = "auto",
    pretrained: Annotated[bool, typer.Option(help="Begin with timm's published weights.")] = False,
    option: Annotated[
        list[str] | None,
        typer.Option("--option", "-o", metavar="KEY=VALUE", help="Of the method: lambda_out=0."),
    ] = None,
    set_: Annotated[
        list[str] | None,
        typer.Option("--set", metavar="KEY=VALUE", help="Of the recipe: augmentation.flip=false."),
    ] = None,
    data_root: Annotated[Path, typer.Option(help="Folder of downloaded data sets.")] = Path("data"),
    force: Annotated[bool, typer.Option(help="Replace another run in DIR.")] = False,
    as_json: JsonOption = False,
) -> None:
    """
    Train a backbone with a method by name.

    Stopped or killed, the same command goes on where it was. torchrun starts several processes.
    """
    from dpn_plugin.training import Recipe, TrainConfig
    from dpn_plugin.training import train as trained

    given = {"epochs": epochs, "image_size": image_size, "batch_size": batch_size, "lr": lr}
    config = TrainConfig(
        backbone=backbone,
        method=method,
        in_domain=parse_source(in_domain, "--in-domain", limit),
        outliers=tuple(parse_source(each, "--outliers", limit) for each in outliers or ()),
        recipe=Recipe.named(recipe, **given | assignments(set_ or (), "--set")),
        stem=stem,
        pretrained=pretrained,
        options=_options(option or []),
        seed=seed,
    )
    use_threads(workers)
    with training_progress() as monitor:
        run = trained(config, out, root=data_root, device=device, force=force, monitor=monitor)
    if is_primary():
        _print_summary(run, as_json)


def _options(items: list[str]) -> dict[str, Any]:
    table = assignments(items, "--option")
    for key, value in table.items():
        if isinstance(value, dict):
            raise typer.BadParameter(f"{key!r} has no options of its own", param_hint="--option")
    return table


def _print_summary(run: "Run", as_json: bool) -> None:
    networks = run.record["networks"]
    best = {
        name: min(entry["history"], key=lambda row: row["held_out_loss"])
        for name, entry in networks.items()
    }
    if as_json:
        print_json({"run": str(run.folder), "selected": best})
        return
    for name, row in best.items():
        typer.echo(
            f"{name}: accuracy {row['held_out_accuracy']:.4f} on held-out data (epoch "
            f"{row['epoch']:.0f}, {networks[name]['seconds']:.0f} s)"
        )
    typer.echo(f"weights, run.json, history.csv and curves.png are in {run.folder}")
