"""``dpn plot``: pictures that need no results."""

from pathlib import Path
from typing import Annotated

import typer

from dpn_plugin.cli.output import JsonOption, print_json
from dpn_plugin.errors import unknown_name

__all__ = ["plot"]

_PICTURES = ("simplex",)


def plot(
    picture: Annotated[str, typer.Argument(help="'simplex': a Dirichlet density.")],
    values: Annotated[
        list[float], typer.Argument(help="The three concentrations, e.g. 0.1 0.1 0.1.")
    ],
    out: Annotated[Path, typer.Option(help="The file to write: .png, .svg or .pdf.")] = Path(
        "simplex.png"
    ),
    as_json: JsonOption = False,
) -> None:
    """Draw a Dirichlet density on the simplex."""
    if picture not in _PICTURES:
        raise unknown_name("picture", picture, _PICTURES)
    from dpn_plugin.report.figures.simplex import simplex_picture

    simplex_picture(values).write(out)
    if as_json:
        print_json({"picture": str(out)})
    else:
        typer.echo(out)
