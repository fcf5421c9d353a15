"""The command ``dpn``: parses arguments and prints results; other packages do the work."""

import os
from typing import Annotated

import typer

from dpn_plugin import __version__
from dpn_plugin.cli.commands import LazyGroup
from dpn_plugin.plugins import ALLOW_LIST

__all__ = ["app", "main"]

app = typer.Typer(name="dpn", cls=LazyGroup, no_args_is_help=True, pretty_exceptions_enable=False)


def _print_version(asked: bool) -> None:
    if asked:
        typer.echo(f"dpn-plugin {__version__}")
        raise typer.Exit


@app.callback()
def dpn(
    version: Annotated[
        bool,
        typer.Option(
            "--version", callback=_print_version, is_eager=True, help="Show the version and stop."
        ),
    ] = False,
    no_plugins: Annotated[
        bool, typer.Option("--no-plugins", help="Load no plugins but those of dpn-plugin itself.")
    ] = False,
) -> None:
    """Dirichlet Prior Networks by name for pytorch-ood and timm."""
    if no_plugins:
        # in the environment, so that it holds for worker processes too
        os.environ[ALLOW_LIST] = ""


def main() -> None:
    """Run the command line and exit the process."""
    app(prog_name="dpn")
