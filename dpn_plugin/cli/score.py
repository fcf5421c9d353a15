"""``dpn score``: what a trained run says about images."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from dpn_plugin.cli.output import JsonOption, print_json, print_table
from dpn_plugin.files import replacing

if TYPE_CHECKING:
    import pandas as pd

__all__ = ["score"]


def score(
    inputs: Annotated[
        list[Path], typer.Argument(metavar="IMAGE...|FOLDER|FILE.npz", help="What to score.")
    ],
    run: Annotated[Path, typer.Option(metavar="DIR", help="What dpn train wrote.")],
    detector: Annotated[str, typer.Option(help="A detector that scores logits.")] = "dpn-mi",
    out: Annotated[
        Path | None, typer.Option(metavar="FILE.csv", help="Write a table instead of printing it.")
    ] = None,
    device: Annotated[str, typer.Option(help="cpu, cuda, cuda:1, mps or auto.")] = "auto",
    as_json: JsonOption = False,
) -> None:
    """
    Score images with a trained run.

    A row for each image: prediction, the five measures, the detector's score (larger is more OOD),
    and where the detector tells them apart the probabilities of correct, misclassified and OOD.
    """
    table = _table(inputs, run, detector, device)
    if out is not None:
        with replacing(out) as temporary:
            table.to_csv(temporary, index=False)
        typer.echo(f"{len(table)} rows in {out}")
    elif as_json:
        print_json(table.to_dict("records"))
    else:
        rows = ([_cell(value) for value in row] for row in table.itertuples(index=False))
        print_table(f"{detector} of {run}", list(table.columns), rows)


def _table(inputs: list[Path], run: Path, detector: str, device: str) -> "pd.DataFrame":
    from dpn_plugin.training import open_run
    from dpn_plugin.training.processes import Processes
    from dpn_plugin.training.scoring import score_table

    return score_table(open_run(run), detector, inputs, Processes.join(device).device)


def _cell(value: Any) -> str:
    return f"{value:.4g}" if isinstance(value, float) else str(value)
