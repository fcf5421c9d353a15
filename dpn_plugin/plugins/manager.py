"""
Load plugins one by one, and collect their entries.

pluggy's own loader stops at the first entry point that fails to import, a raising hook aborts the
whole call, and a misspelt hook is silent. So every plugin gets a manager of its own here: its
errors are recorded as its failures and do not affect other plugins.
"""

import sys
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, redirect_stdout
from dataclasses import replace
from difflib import get_close_matches
from threading import RLock
from typing import Any

import pluggy

from dpn_plugin.errors import choices
from dpn_plugin.plugins import hookspecs
from dpn_plugin.plugins.discovery import (
    OWN_PACKAGE,
    Failure,
    Source,
    allow_list,
    installed_sources,
    reason,
)
from dpn_plugin.plugins.hookspecs import GROUP, KINDS, Entry
from dpn_plugin_autoload import failures as host_failures
from dpn_plugin_autoload import is_being_imported


class Plugin:
    """
    One loaded plugin.

    :param source: the entry point of the plugin
    :param implementation: the module or object with its hooks
    :raises pluggy.PluginValidationError: if a hook has arguments that the specification lacks
    """

    def __init__(self, source: Source, implementation: Any) -> None:
        self.source = source
        self._manager = pluggy.PluginManager(GROUP)
        self._manager.add_hookspecs(hookspecs)
        self._manager.register(implementation, source.point.name)
        self._callers = self._manager.get_hookcallers(implementation) or []

    @property
    def hooks(self) -> list[str]:
        """The names of the known hooks that it implements."""
        return sorted(caller.name for caller in self._callers if caller.has_spec())

    def mistakes(self) -> Iterator[str]:
        """Yield a sentence for every hook that would never be called."""
        known = [f"dpn_{kind}" for kind in KINDS]
        if not self._callers:
            yield f"has no hook; mark {choices(known)} with @dpn_plugin.hookimpl"
        for caller in self._callers:
            optional = all(hook.optionalhook for hook in caller.get_hookimpls())
            if not caller.has_spec() and not optional:
                close = get_close_matches(caller.name, known, n=1) or known
                yield f"there is no hook {caller.name!r}; did you mean {choices(close)}?"

    def call(self, kind: str) -> Iterator[Any]:
        """
        Yield the entries of a kind; they are not checked.

        :param kind: a key of ``KINDS``
        :raises TypeError: if a hook does not return an iterable
        """
        # A plain TypeError: this is a mistake in the plugin, not in what the user gave.
        for given in getattr(self._manager.hook, f"dpn_{kind}")():
            if not isinstance(given, Iterable) or isinstance(given, str | bytes):
                raise TypeError(f"gave a {type(given).__name__}; yield dpn_plugin.Entry objects")
            yield from given


class Plugins:
    """
    All plugins and their entries; the hooks of a kind are called on first use.

    :param allowed: entry points to load, see :func:`installed_sources`
    """

    def __init__(self, allowed: str | None) -> None:
        sources, failures = installed_sources(allowed)
        #: The modules of plugins that were found in the middle of their import.
        self.unfinished: list[str] = []
        self.loaded: list[Plugin] = []
        self._failures = failures
        self._entries: dict[str, dict[str, tuple[Entry, Source]]] = {}
        self._lock = RLock()
        for source in sources:
            with self.recording(source, "cannot be loaded"):
                self._load(source)

    @property
    def failures(self) -> list[Failure]:
        """All failures, after the hooks of every kind were called."""
        for kind in KINDS:
            self.entries(kind)
        return [*self._failures, *_hosts_not_extended()]

    def entries(self, kind: str) -> dict[str, tuple[Entry, Source]]:
        """
        Return every entry of a kind with its source, by lower-case name and lower-case alias.

        :param kind: a key of ``KINDS``
        """
        with self._lock:
            if kind not in self._entries:
                # Set first: a hook that lists its own kind gets the entries of earlier plugins.
                self._entries[kind] = {}
                for plugin in self.loaded:
                    self._call_hook(plugin, kind)
            return self._entries[kind]

    @contextmanager
    def recording(self, source: Source, problem: str) -> Iterator[None]:
        """
        Record an exception in the block as a failure of ``source``; only Ctrl-C is raised again.

        :param source: the plugin whose code runs in the block
        :param problem: the start of the message, e.g. ``"cannot be loaded"``
        """
        try:
            # The output of a plugin that prints would break `--json`.
            with redirect_stdout(sys.stderr):
                yield
        except KeyboardInterrupt:
            raise
        except BaseException as error:  # SystemExit too
            self._fail(source, f"{problem} ({reason(error)})")

    def _load(self, source: Source) -> None:
        unfinished = _being_imported(source.point.module)
        if unfinished:
            self.unfinished.append(unfinished)
            return
        plugin = Plugin(source, source.point.load())
        for mistake in plugin.mistakes():
            self._fail(source, mistake)
        self.loaded.append(plugin)

    def _call_hook(self, plugin: Plugin, kind: str) -> None:
        with self.recording(plugin.source, f"hook dpn_{kind} failed"):
            # All or nothing: if the hook raises, none of its entries is added.
            for entry in list(plugin.call(kind)):
                if isinstance(entry, Entry):
                    self._add(kind, entry, plugin.source)
                else:
                    what = type(entry).__name__
                    self._fail(plugin.source, f"hook dpn_{kind} gave a {what}, not an Entry")

    def _add(self, kind: str, entry: Entry, source: Source) -> None:
        found = self._entries[kind]
        taken = [name for name in (entry.name, *entry.aliases) if name.lower() in found]
        for name in taken:
            first = found[name.lower()][1]
            self._fail(source, f"{KINDS[kind]} {name!r} is refused: {first} has that name already")
        if entry.name not in taken:
            kept = replace(entry, aliases=tuple(a for a in entry.aliases if a not in taken))
            found.update({name.lower(): (kept, source) for name in (kept.name, *kept.aliases)})

    def _fail(self, source: Source, message: str) -> None:
        self._failures.append(Failure(source.package, source.version, source.point.name, message))


_found: dict[str | None, Plugins] = {}


def plugins() -> Plugins:
    """Return the plugins of this process, loaded on first use."""
    allowed = allow_list()
    if allowed not in _found:
        found = Plugins(allowed)
        # A plugin found in the middle of its import is tried again on the next call.
        if found.unfinished:
            return found
        # A plugin that imports timm asks for all plugins, too; the first result is in use.
        _found.setdefault(allowed, found)
    return _found[allowed]


def _being_imported(module: str) -> str | None:
    """Return the outermost package of a module, or itself, that is in the middle of its import."""
    parts = module.split(".")
    names = (".".join(parts[: length + 1]) for length in range(len(parts)))
    return next((name for name in names if is_being_imported(name)), None)


def _hosts_not_extended() -> Iterator[Failure]:
    for name, error in host_failures:
        message = f"names are missing in {name} ({reason(error)})"
        yield Failure(OWN_PACKAGE, "", "autoload", message)
