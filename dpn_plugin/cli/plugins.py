"""``dpn plugins``: who gives what, and who failed."""

from dataclasses import asdict
from typing import Any

import typer

from dpn_plugin.cli.output import JsonOption, print_json, print_table
from dpn_plugin.plugins import manager
from dpn_plugin.plugins.hookspecs import KINDS

__all__ = ["failure_records", "plugin_records", "plugins", "print_plugins"]


def plugins(as_json: JsonOption = False) -> None:
    """Show the plugins, and those that failed."""
    if as_json:
        print_json({"plugins": plugin_records(), "failures": failure_records()})
    else:
        print_plugins()


def plugin_records() -> list[dict[str, Any]]:
    """:return: package, version, name, hooks and entries of every plugin that was loaded"""
    return [
        {
            "package": plugin.source.package,
            "version": plugin.source.version,
            "plugin": plugin.source.point.name,
            "hooks": plugin.hooks,
            "entries": _entry_names(plugin),
        }
        for plugin in manager.plugins().loaded
    ]


def failure_records() -> list[dict[str, str]]:
    """:return: package, version, plugin and message of everything that went wrong"""
    return [asdict(failure) for failure in manager.plugins().failures]


def print_plugins() -> None:
    """Print a table of the plugins and, if there are any, one of the failures."""
    print_table(
        "plugins",
        ("package", "version", "plugin", "hooks", "entries"),
        [
            (*list(each.values())[:3], " ".join(each["hooks"]), _counts(each["entries"]))
            for each in plugin_records()
        ],
    )
    failures = failure_records()
    if failures:
        heads = ("package", "version", "plugin", "what went wrong")
        typer.echo()
        print_table("failures", heads, [tuple(each.values()) for each in failures])


def _entry_names(plugin: manager.Plugin) -> dict[str, list[str]]:
    names = {
        kind: sorted(
            entry.name
            for name, (entry, source) in manager.plugins().entries(kind).items()
            if source == plugin.source and name == entry.name.lower()
        )
        for kind in KINDS
    }
    return {kind: given for kind, given in names.items() if given}


def _counts(entries: dict[str, list[str]]) -> str:
    return ", ".join(f"{len(names)} {kind}" for kind, names in entries.items())
