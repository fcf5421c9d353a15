"""``dpn report``: write the page, the tables and the figures of stored results."""

from pathlib import Path
from typing import Annotated

import typer

from dpn_plugin.cli.output import JsonOption, print_json


def report(
    folders: Annotated[list[Path], typer.Argument(help="Folders that dpn bench wrote.")],
    out: Annotated[
        Path | None,
        typer.Option(help="Where to write; by default the one folder that is reported on."),
    ] = None,
    against: Annotated[
        str | None,
        typer.Option(help="openood: set OpenOOD's published leaderboard beside the figures."),
    ] = None,
    as_json: JsonOption = False,
) -> None:
    """
    Write the report of one or several benchmarks.

    Several folders, of many backbones or many machines, become one report: name its folder with
    --out. Beside report.html there are tables/ (Markdown, CSV, LaTeX) and figures/ (PNG, SVG).

    With --against openood, OpenOOD's published rows stand beside those of the suites openood-*.
    """
    from dpn_plugin.report import write_report

    path = write_report(folders, out, against)
    if as_json:
        print_json({"report": str(path)})
    else:
        typer.echo(path)
