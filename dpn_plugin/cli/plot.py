"""``dpn plot``: figures that need no results."""

from pathlib import Path
from typing import Annotated

import typer

from dpn_plugin.cli.output import JsonOption, print_json
from dpn_plugin.errors import unknown_name

_FIGURES = ("simplex",)


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
    if picture not in _FIGURES:
        raise unknown_name("picture", picture, _FIGURES)
    from dpn_plugin.report import simplex_figure

    simplex_figure(values).write(out)
    if as_json:
        print_json({"picture": str(out)})
    else:
        typer.echo(out)
