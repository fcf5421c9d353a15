"""``dpn plugins``: what each plugin provides, and which plugins failed."""

from dataclasses import asdict
from typing import Any

import typer

from dpn_plugin.cli.output import JsonOption, print_json, print_table
from dpn_plugin.plugins import KINDS, Plugin, host_problems
from dpn_plugin.plugins import plugins as load_plugins


def plugins(as_json: JsonOption = False) -> None:
    """
    Show the plugins, and those that failed.

    Imports pytorch-ood and timm, which takes seconds: some failures appear only when the hosts get
    the names.
    """
    problems = host_problems()
    if as_json:
        print_json({"plugins": plugin_records(), "failures": failure_records(), "hosts": problems})
        return
    print_plugins()
    if problems:
        typer.echo()
        print_table("hosts", ("host", "what went wrong"), list(problems.items()))


def plugin_records() -> list[dict[str, Any]]:
    """Return package, version, name, hooks and entries of every loaded plugin."""
    return [
        {
            "package": plugin.source.package,
            "version": plugin.source.version,
            "plugin": plugin.source.point.name,
            "hooks": plugin.hooks,
            "entries": _entry_names(plugin),
        }
        for plugin in load_plugins().loaded
    ]


def failure_records() -> list[dict[str, str]]:
    """Return package, version, plugin and message of every failure."""
    return [asdict(failure) for failure in load_plugins().failures]


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


def _entry_names(plugin: Plugin) -> dict[str, list[str]]:
    names = {
        kind: sorted(
            entry.name
            for name, (entry, source) in load_plugins().entries(kind).items()
            if source == plugin.source and name == entry.name.lower()
        )
        for kind in KINDS
    }
    return {kind: given for kind, given in names.items() if given}


def _counts(entries: dict[str, list[str]]) -> str:
    return ", ".join(f"{len(names)} {kind}" for kind, names in entries.items())
