"""The table of commands. A command's module is imported when the command runs."""

import os
from importlib import import_module
from typing import Any, NoReturn

import typer
from typer.core import TyperCommand, TyperGroup

from dpn_plugin.cli.output import is_primary
from dpn_plugin.errors import UserError

__all__ = ["COMMANDS", "LazyGroup"]

#: name: ("module:function", the line in ``dpn --help``)
COMMANDS = {
    "train": ("dpn_plugin.cli.train:train", "Train a backbone with a method by name."),
    "score": ("dpn_plugin.cli.score:score", "Score images with a trained run."),
    "bench": (
        "dpn_plugin.cli.bench:bench",
        "Train and compare methods and detectors on a suite of data sets.",
    ),
    "list": ("dpn_plugin.cli.listing:listing", "List what can be picked by name."),
    "report": ("dpn_plugin.cli.report:report", "Write the report of one or several benchmarks."),
    "plot": ("dpn_plugin.cli.plot:plot", "Draw a Dirichlet density on the simplex."),
    "plugins": ("dpn_plugin.cli.plugins:plugins", "Show the plugins, and those that failed."),
    "check": (
        "dpn_plugin.cli.check:check",
        "Check a plugin and all that it gives.",
    ),
    "doctor": ("dpn_plugin.cli.doctor:doctor", "Show versions, devices and what is missing."),
}


class LazyGroup(TyperGroup):
    """
    A group that knows its commands by name and help line, and imports the one that runs.

    Problems that the user can mend end the process with 2 and the message alone.
    """

    def __init__(self, **settings: Any) -> None:
        super().__init__(**settings)
        for name, (_, line) in COMMANDS.items():
            self.add_command(TyperCommand(name, help=line))

    def resolve_command(self, ctx: Any, args: list[str]) -> Any:
        """:return: the command that ``args`` begins with, imported"""
        if args[0] in COMMANDS:
            self.add_command(_imported(args[0]), args[0])
        return super().resolve_command(ctx, args)

    def invoke(self, ctx: Any) -> Any:
        """Run the command."""
        try:
            return super().invoke(ctx)
        except (UserError, TypeError) as error:
            _stop(f"Error: {error}", 2)
        except KeyboardInterrupt as interrupt:
            _stop(str(interrupt) or "Interrupted.", 130)


def _imported(name: str) -> Any:
    module, _, function = COMMANDS[name][0].partition(":")
    # typer makes a bare command of an application that has one
    single = typer.Typer(add_completion=False)
    single.command(name)(getattr(import_module(module), function))
    return typer.main.get_command(single)


def _stop(message: str, code: int) -> NoReturn:
    if is_primary():
        typer.echo(message, err=True)
    elif code == 2:  # perhaps it is wrong on this machine alone
        typer.echo(f"Process {os.environ.get('RANK')}: {message}", err=True)
    raise typer.Exit(code)
