"""The table of commands, and how a command ends. A command is imported when it runs."""

import os
from importlib import import_module
from typing import Any, NoReturn

import typer
from typer.core import TyperCommand, TyperGroup

from dpn_plugin.cli.output import is_primary
from dpn_plugin.errors import UserError

#: where bugs are reported; the same address as in ``[project.urls]``
ISSUES = "https://github.com/dpn-plugin/dpn-plugin/issues"

#: printed below the traceback of an error that is not the user's
BUG_NOTE = (
    "This is a bug in dpn-plugin, or in a plugin that the traceback names: please report it with"
    f" the command and the output of `dpn doctor` at {ISSUES}."
)

#: name: ("module:function", the line in ``dpn --help``)
COMMANDS = {
    "train": ("dpn_plugin.cli.train:train", "Train a backbone with a method by name."),
    "bundle": (
        "dpn_plugin.cli.bundle:bundle",
        "Fit and calibrate detectors: a trained run, ready for use.",
    ),
    "score": ("dpn_plugin.cli.score:score", "Score images with a bundle or a trained run."),
    "export": ("dpn_plugin.cli.export:export", "Export a bundle to ONNX or a torch program."),
    "monitor": (
        "dpn_plugin.cli.monitor:monitor",
        "Raise an alarm when images are no longer like the calibration data.",
    ),
    "bench": (
        "dpn_plugin.cli.bench:bench",
        "Train and compare methods and detectors on a suite of data sets.",
    ),
    "suite": ("dpn_plugin.cli.suite:suite", "Show a suite, or copy it to a file to edit."),
    "list": ("dpn_plugin.cli.listing:listing", "List what can be picked by name."),
    "report": ("dpn_plugin.cli.report:report", "Write the report of one or several benchmarks."),
    "plot": ("dpn_plugin.cli.plot:plot", "Draw a Dirichlet density, or the figures of the paper."),
    "plugins": ("dpn_plugin.cli.plugins:plugins", "Show the plugins, and those that failed."),
    "check": (
        "dpn_plugin.cli.check:check",
        "Check a plugin and everything that it provides.",
    ),
    "doctor": ("dpn_plugin.cli.doctor:doctor", "Show versions, devices and what is missing."),
}


class LazyGroup(TyperGroup):
    """
    A group that lists its commands by name and help line, and imports only the one that runs.

    A :class:`UserError` ends the process with exit code 2 and its message. Any other exception is a
    bug: it keeps its traceback and ends the process with exit code 1.
    """

    def __init__(self, **settings: Any) -> None:
        super().__init__(**settings)
        for name, (_, line) in COMMANDS.items():
            self.add_command(TyperCommand(name, help=line))

    def resolve_command(self, ctx: Any, args: list[str]) -> Any:
        """Import and return the command that ``args`` starts with."""
        if args[0] in COMMANDS:
            self.add_command(_imported(args[0]), args[0])
        return super().resolve_command(ctx, args)

    def invoke(self, ctx: Any) -> Any:
        """Run the command; see the class for how it ends if the command raises."""
        try:
            return super().invoke(ctx)
        except UserError as error:
            _stop(f"Error: {_sentence(str(error))}", 2)
        except KeyboardInterrupt as interrupt:
            _stop(str(interrupt) or "Interrupted.", 130)
        except Exception as error:
            # Python prints notes below the traceback. click handles its own exceptions, such as
            # bad usage, and does not print them.
            error.add_note(BUG_NOTE)
            raise


def _imported(name: str) -> Any:
    module, _, function = COMMANDS[name][0].partition(":")
    # typer turns an application with a single command into that command
    single = typer.Typer(add_completion=False)
    single.command(name)(getattr(import_module(module), function))
    return typer.main.get_command(single)


def _sentence(text: str) -> str:
    """Return a message that ends like one, also if it quotes another library at its end."""
    return text if text.endswith((".", "?", "!")) else f"{text}."


def _stop(message: str, code: int) -> NoReturn:
    if is_primary():
        typer.echo(message, err=True)
    elif code == 2:  # the problem may exist on this machine only
        typer.echo(f"Process {os.environ.get('RANK')}: {message}", err=True)
    raise typer.Exit(code)
