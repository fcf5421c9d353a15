"""The rules of a whole plugin, and the checks of all that it gives."""

import os
import subprocess  # nosec B404 # this interpreter, without a shell
import sys
import warnings

from dpn_plugin.plugins.hookspecs import KINDS, Entry
from dpn_plugin.plugins.manager import plugins
from dpn_plugin.testing.plugin_case import PluginCase
from dpn_plugin.testing.rules import CheckFailed, ConformanceWarning, require

__all__ = ["PLUGIN_RULES", "can_be_loaded"]

#: of a hook module, in seconds; `dpn list` imports every one
SLOW = 1.0
_TIMED = """
import sys, time, dpn_plugin
begun = time.perf_counter()
__import__(sys.argv[1])
print(time.perf_counter() - begun, "torch" in sys.modules, file=sys.stderr)
"""


def can_be_loaded(case: PluginCase) -> None:
    """Its module can be imported, and its hooks take no arguments."""
    try:
        assert case.plugin
    except SystemExit as error:
        raise CheckFailed(
            "importing it raised SystemExit. Move what runs under a main()."
        ) from error


def can_be_imported_quickly(case: PluginCase) -> None:
    """Every `dpn` command imports the hook module, so it must not import torch."""
    assert case.loaded
    command = [sys.executable, "-c", _TIMED, case.source.point.module]
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path), "DPN_PLUGINS": ""}
    done = subprocess.run(  # nosec B603 # the module is one that the user asked to check
        command, env=environment, capture_output=True, text=True, timeout=300
    )
    seconds, torch_too = done.stderr.split()[-2:]
    mend = 'Name factories as text, Entry(name, "package.module:Class", ...), and import less.'
    if torch_too == "True":
        warnings.warn(ConformanceWarning(f"Importing it imports torch. {mend}"))
    elif float(seconds) > SLOW:
        warnings.warn(ConformanceWarning(f"Importing it takes {float(seconds):.1f} s. {mend}"))


def has_hooks_that_are_spelt_right(case: PluginCase) -> None:
    """Every hook that it marks is one that gets called."""
    mistakes = list(case.loaded.mistakes())
    names = ", ".join(f"dpn_{kind}" for kind in KINDS)
    require(not mistakes, "; ".join(mistakes).rstrip("?"), f"The hooks are {names}")


def has_hooks_that_give_entries(case: PluginCase) -> None:
    """Every hook yields dpn_plugin.Entry objects and does not raise."""
    for kind in KINDS:
        try:
            given = list(case.loaded.call(kind))
        except Exception as error:
            seen = f"dpn_{kind} failed with {type(error).__name__}: {error}"
            raise CheckFailed(
                f"{seen}. Yield dpn_plugin.Entry objects and nothing else."
            ) from error
        for each in given:
            what = type(each).__name__
            require(isinstance(each, Entry), f"dpn_{kind} gave a {what}", "Yield dpn_plugin.Entry")


def has_names_that_nobody_else_has(case: PluginCase) -> None:
    """A name or alias stands for one thing of its kind, in any case."""
    for kind in KINDS:
        taken = {
            name: str(source)
            for name, (_, source) in plugins().entries(kind).items()
            if source.point.module != case.source.point.module
        }
        for entry in case.given(kind):
            for name in (entry.name, *entry.aliases):
                ours = f"{case.source} as {entry.name!r}"
                owner = taken.setdefault(name.lower(), ours)
                mend = "Choose another name: the one that comes later is refused"
                require(owner == ours, f"{KINDS[kind]} {name!r} belongs to {owner}", mend)


def has_factories_that_can_be_imported(case: PluginCase) -> None:
    """What an entry names is there."""
    for kind, entry in case.entries:
        try:
            entry.resolve()
        except Exception as error:
            seen = f"{KINDS[kind]} {entry.name!r}: {entry.factory!r} raised {error!r}"
            raise CheckFailed(f"{seen}. Write 'package.module:Name' as in an import.") from error


def has_one_line_about_every_entry(case: PluginCase) -> None:
    """Listings show a summary."""
    for kind, entry in case.entries:
        require(
            bool(entry.summary.strip()) and "\n" not in entry.summary,
            f"{KINDS[kind]} {entry.name!r} has the summary {entry.summary!r}",
            "Say in one line what it is",
        )


PLUGIN_RULES = (
    can_be_loaded,
    can_be_imported_quickly,
    has_hooks_that_are_spelt_right,
    has_hooks_that_give_entries,
    has_names_that_nobody_else_has,
    has_factories_that_can_be_imported,
    has_one_line_about_every_entry,
)
