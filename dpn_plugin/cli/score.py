"""``dpn score``: the scores of images, from a trained run."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from dpn_plugin._files import replacing
from dpn_plugin.cli.output import JsonOption, json_text, print_json, print_table
from dpn_plugin.errors import UserError

if TYPE_CHECKING:
    import pandas as pd


def score(
    inputs: Annotated[
        list[Path], typer.Argument(metavar="IMAGE...|FOLDER|FILE.npz", help="What to score.")
    ],
    run: Annotated[Path, typer.Option(metavar="DIR", help="What dpn train wrote.")],
    detector: Annotated[str, typer.Option(help="A detector that scores logits.")] = "dpn-mi",
    out: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE",
            help="Write the table instead of printing it, as its ending says: .csv or .json.",
        ),
    ] = None,
    device: Annotated[str, typer.Option(help="cpu, cuda, cuda:1, mps or auto.")] = "auto",
    as_json: JsonOption = False,
) -> None:
    """
    Score images with a trained run.

    A row for each image: prediction, the five measures, the detector's score (larger is more OOD),
    and if the detector gives them the probabilities of correct, misclassified and OOD.
    """
    if out is not None:
        _check_ending(out, as_json)
    table = _table(inputs, run, detector, device)
    if out is not None:
        _write(table, out)
        typer.echo(f"{len(table)} rows in {out}")
    elif as_json:
        print_json(table.to_dict("records"))
    else:
        rows = ([_cell(value) for value in row] for row in table.itertuples(index=False))
        print_table(f"{detector} of {run}", list(table.columns), rows)


def _table(inputs: list[Path], run: Path, detector: str, device: str) -> "pd.DataFrame":
    from dpn_plugin.deploy import score_images
    from dpn_plugin.runs import open_run

    return score_images(open_run(run), detector, inputs, device)


def _check_ending(out: Path, as_json: bool) -> None:
    allowed = (".json",) if as_json else (".csv", ".json")
    if out.suffix.lower() not in allowed:
        given = "--json with --out" if as_json else "--out"
        raise UserError(
            f"{given} takes a file that ends in {' or '.join(allowed)}, not {out.name!r}: the "
            "ending decides the format."
        )


def _write(table: "pd.DataFrame", out: Path) -> None:
    with replacing(out) as temporary:
        if out.suffix.lower() == ".json":
            temporary.write_text(json_text(table.to_dict("records")) + "\n", "utf-8")
        else:
            table.to_csv(temporary, index=False)


def _cell(value: Any) -> str:
    return f"{value:.4g}" if isinstance(value, float) else str(value)
