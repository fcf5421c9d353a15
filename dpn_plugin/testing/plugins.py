"""A plugin under test, and the rules of a plugin as a whole."""

import os
import subprocess  # nosec B404 # this interpreter, without a shell
import sys
import warnings
from importlib.metadata import EntryPoint
from importlib.util import find_spec

from dpn_plugin.errors import unknown_name
from dpn_plugin.plugins import (
    GROUP,
    KINDS,
    Entry,
    Plugin,
    Source,
    installed_sources,
    plugins,
    reason,
)
from dpn_plugin.testing.checks import CheckFailed, CheckSkipped, ConformanceWarning, require

#: seconds of import time of a hook module; `dpn list` imports every one
SLOW = 1.0
_TIMED = """
import sys, time, dpn_plugin
start = time.perf_counter()
__import__(sys.argv[1])
print(time.perf_counter() - start, "torch" in sys.modules, file=sys.stderr)
"""


class PluginCase:
    """
    A plugin under test, loaded apart from all others.

    :param source: where it was found
    """

    def __init__(self, source: Source) -> None:
        self.source = source

    def load(self) -> Plugin:
        """Import and return the plugin; this may raise anything."""
        return Plugin(self.source, self.source.point.load())

    def load_or_skip(self) -> Plugin:
        """Return the plugin; skip the check if it cannot be imported."""
        try:
            return self.load()
        except (Exception, SystemExit) as error:
            raise CheckSkipped(f"the plugin cannot be loaded ({reason(error)})") from None

    def entries_of(self, kind: str) -> list[Entry]:
        """Return the valid entries of one kind; none if the hook fails."""
        try:
            return [each for each in self.load_or_skip().call(kind) if isinstance(each, Entry)]
        except (Exception, CheckSkipped):
            return []

    def entries(self) -> list[tuple[str, Entry]]:
        """Return kind and entry of everything that the plugin provides."""
        return [(kind, entry) for kind in KINDS for entry in self.entries_of(kind)]


def find_sources(name: str) -> list[Source]:
    """
    Return the plugins of a distribution, an entry point or a module.

    :param name: its name
    :raises UserError: if there is none; the message suggests the nearest names
    """
    sources = installed_sources(None)[0]
    found = [each for each in sources if name in _names(each)]
    if found:
        return found
    if not _is_module(name):
        raise unknown_name("plugin or module", name, {n for each in sources for n in _names(each)})
    return [Source(name, "", EntryPoint(name, name, GROUP))]


def _names(source: Source) -> tuple[str, str, str]:
    return source.package, source.point.name, source.point.module


def _is_module(name: str) -> bool:
    try:
        return find_spec(name) is not None
    except (ImportError, ValueError):
        return False


def can_be_loaded(case: PluginCase) -> None:
    """Its module can be imported, and its hooks take no arguments."""
    try:
        case.load()
    except SystemExit as error:
        raise CheckFailed(
            "importing it raised SystemExit. Move the code that runs into a function main()."
        ) from error


def can_be_imported_quickly(case: PluginCase) -> None:
    """Every `dpn` command imports the hook module, so it must not import torch."""
    case.load_or_skip()
    command = [sys.executable, "-c", _TIMED, case.source.point.module]
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path), "DPN_PLUGINS": ""}
    done = subprocess.run(  # nosec B603 # the module is one that the user asked to check
        command, env=environment, capture_output=True, text=True, timeout=300
    )
    seconds, imports_torch = done.stderr.split()[-2:]
    fix = 'Name factories as text, Entry(name, "package.module:Class", ...), and import less.'
    if imports_torch == "True":
        warnings.warn(ConformanceWarning(f"Importing it imports torch. {fix}"))
    elif float(seconds) > SLOW:
        warnings.warn(ConformanceWarning(f"Importing it takes {float(seconds):.1f} s. {fix}"))


def has_hooks_that_are_spelt_right(case: PluginCase) -> None:
    """Every function marked as a hook has the name of a hook."""
    mistakes = list(case.load_or_skip().mistakes())
    names = ", ".join(f"dpn_{kind}" for kind in KINDS)
    require(not mistakes, "; ".join(mistakes).rstrip("?"), f"The hooks are {names}")


def has_hooks_that_give_entries(case: PluginCase) -> None:
    """Every hook yields dpn_plugin.Entry objects and does not raise."""
    for kind in KINDS:
        try:
            found = list(case.load_or_skip().call(kind))
        except Exception as error:
            observed = f"dpn_{kind} failed with {type(error).__name__}: {error}"
            raise CheckFailed(
                f"{observed}. Yield dpn_plugin.Entry objects and nothing else."
            ) from error
        for each in found:
            type_ = type(each).__name__
            require(isinstance(each, Entry), f"dpn_{kind} gave a {type_}", "Yield dpn_plugin.Entry")


def has_unique_names(case: PluginCase) -> None:
    """A name or alias belongs to one entry of its kind; upper and lower case are the same."""
    for kind in KINDS:
        taken = {
            name: str(source)
            for name, (_, source) in plugins().entries(kind).items()
            if source.point.module != case.source.point.module
        }
        for entry in case.entries_of(kind):
            for name in (entry.name, *entry.aliases):
                ours = f"{case.source} as {entry.name!r}"
                owner = taken.setdefault(name.lower(), ours)
                fix = "Choose another name: the one that comes later is refused"
                require(owner == ours, f"{KINDS[kind]} {name!r} belongs to {owner}", fix)


def has_factories_that_can_be_imported(case: PluginCase) -> None:
    """The factory of every entry can be imported."""
    for kind, entry in case.entries():
        try:
            entry.resolve()
        except Exception as error:
            observed = f"{KINDS[kind]} {entry.name!r}: {entry.factory!r} raised {error!r}"
            raise CheckFailed(
                f"{observed}. Write 'package.module:Name' as in an import."
            ) from error


def has_one_line_about_every_entry(case: PluginCase) -> None:
    """Every entry has a summary of one line, which listings show."""
    for kind, entry in case.entries():
        require(
            bool(entry.summary.strip()) and "\n" not in entry.summary,
            f"{KINDS[kind]} {entry.name!r} has the summary {entry.summary!r}",
            "Describe it in one line",
        )


PLUGIN_RULES = (
    can_be_loaded,
    can_be_imported_quickly,
    has_hooks_that_are_spelt_right,
    has_hooks_that_give_entries,
    has_unique_names,
    has_factories_that_can_be_imported,
    has_one_line_about_every_entry,
)
