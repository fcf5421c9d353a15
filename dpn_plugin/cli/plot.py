"""``dpn plot``: a Dirichlet density, and the figures of the paper."""

from pathlib import Path
from typing import Annotated

import typer

from dpn_plugin.cli.output import JsonOption, print_json
from dpn_plugin.errors import UserError, unknown_name

_PICTURES = ("simplex", "paper")


def plot(
    picture: Annotated[
        str,
        typer.Argument(help="'simplex': a Dirichlet density; 'paper': the figures of the paper."),
    ],
    values: Annotated[
        list[float] | None,
        typer.Argument(help="For 'simplex': the three concentrations, e.g. 0.1 0.1 0.1."),
    ] = None,
    bench: Annotated[
        Path | None,
        typer.Option(help="For 'paper': a folder of dpn bench synthetic, for figures 5 to 7."),
    ] = None,
    out: Annotated[
        Path | None,
        typer.Option(
            help="For 'simplex': the file to write, .png, .svg or .pdf (simplex.png if left out)."
            " For 'paper': the folder to write PNG and SVG to (figures if left out)."
        ),
    ] = None,
    as_json: JsonOption = False,
) -> None:
    """
    Draw a Dirichlet density, or the figures of the paper.

    Figures 1 to 4 of the paper are densities and regularisers. Figures 5 to 7 show trained networks
    and need --bench.
    """
    if picture not in _PICTURES:
        raise unknown_name("picture", picture, _PICTURES)
    if picture == "paper":
        if values:
            raise UserError("Concentrations belong to 'simplex'; 'paper' takes none.")
        _plot_paper(bench, out or Path("figures"), as_json)
        return
    if bench is not None:
        raise UserError("--bench belongs to 'paper'; 'simplex' takes three concentrations.")
    _plot_simplex(values or [], out or Path("simplex.png"), as_json)


def _plot_simplex(values: list[float], out: Path, as_json: bool) -> None:
    from dpn_plugin.report import simplex_figure

    simplex_figure(values).write(out)
    if as_json:
        print_json({"picture": str(out)})
    else:
        typer.echo(out)


def _plot_paper(bench: Path | None, out: Path, as_json: bool) -> None:
    from dpn_plugin.report import draw_paper_figures

    drawn = draw_paper_figures(bench)
    for figure in drawn.figures.values():
        figure.save(out)
    paths = {number: str(out / f"{each.key}.png") for number, each in sorted(drawn.figures.items())}
    if as_json:
        print_json({"pictures": paths, "not_drawn": drawn.missing})
        return
    for path in paths.values():
        typer.echo(path)
    for number, sentence in drawn.missing.items():
        typer.echo(f"Not drawn: figure {number}. {sentence}")
