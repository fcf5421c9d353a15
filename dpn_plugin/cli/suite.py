"""``dpn suite``: show the TOML file of a suite, or copy it."""

from pathlib import Path
from typing import Annotated

import typer

from dpn_plugin.cli.output import print_note
from dpn_plugin.errors import UserError, unknown_name

_ACTIONS = ("show", "copy")


def suite(
    action: Annotated[str, typer.Argument(metavar="show|copy", help="What to do with it.")],
    name: Annotated[str, typer.Argument(help="Name of a suite: dpn list suites.")],
    path: Annotated[
        Path | None, typer.Argument(metavar="[FILE.toml]", help="For copy: the file to write.")
    ] = None,
) -> None:
    """
    Show a suite, or copy it to a file to edit.

    'dpn suite show digits' prints the suite file; 'dpn suite copy digits my.toml' writes a copy for
    'dpn bench my.toml'.
    """
    if action not in _ACTIONS:
        raise unknown_name("action", action, _ACTIONS)
    if action == "show":
        _show(name, path)
    else:
        _copy(name, path)


def _show(name: str, path: Path | None) -> None:
    from dpn_plugin.bench import read_suite_text

    if path is not None:
        raise UserError(f"show takes no file: to write one, use dpn suite copy {name} {path}.")
    typer.echo(read_suite_text(name), nl=False)


def _copy(name: str, path: Path | None) -> None:
    from dpn_plugin.bench import copy_suite

    if path is None:
        raise UserError(f"copy needs the file to write: dpn suite copy {name} my.toml.")
    for source, place in copy_suite(name, path).items():
        print_note(
            f"{source} is {place} in the original: copy it next to {path}, or edit its path."
        )
    typer.echo(f"Wrote {path}. Edit it, then run: dpn bench {_as_argument(path)}")


def _as_argument(path: Path) -> str:
    return f"'{path}'" if " " in str(path) else str(path)
