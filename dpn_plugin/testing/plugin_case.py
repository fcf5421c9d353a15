"""A plugin that is checked: found by any of its names, loaded apart from all others."""

from functools import cached_property
from importlib.metadata import EntryPoint
from importlib.util import find_spec

from dpn_plugin.errors import unknown_name
from dpn_plugin.plugins.discovery import Source, builtin_sources, installed_sources, reason
from dpn_plugin.plugins.hookspecs import GROUP, KINDS, Entry
from dpn_plugin.plugins.manager import Plugin
from dpn_plugin.testing.rules import CheckSkipped

__all__ = ["PluginCase", "find_sources"]


class PluginCase:
    """
    :param source: where it comes from
    """

    def __init__(self, source: Source) -> None:
        self.source = source

    @cached_property
    def plugin(self) -> Plugin:
        """The plugin; importing it may raise anything."""
        return Plugin(self.source, self.source.point.load())

    @cached_property
    def loaded(self) -> Plugin:
        """The plugin, for rules that come after the import."""
        try:
            return self.plugin
        except (Exception, SystemExit) as error:
            raise CheckSkipped(f"the plugin cannot be loaded ({reason(error)})") from None

    def given(self, kind: str) -> list[Entry]:
        """:return: the sound entries of one kind; none if the hook fails"""
        try:
            return [each for each in self.loaded.call(kind) if isinstance(each, Entry)]
        except (Exception, CheckSkipped):
            return []

    @cached_property
    def entries(self) -> list[tuple[str, Entry]]:
        """Kind and entry of everything that it gives."""
        return [(kind, entry) for kind in KINDS for entry in self.given(kind)]


def find_sources(name: str) -> list[Source]:
    """
    :param name: a distribution, an entry point or a module
    :return: its plugins
    :raises UserError: if there is none; offers the nearest
    """
    sources = [*builtin_sources(), *installed_sources(None)[0]]
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
