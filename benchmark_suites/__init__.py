"""The suites that come with dpn-plugin: one TOML file each, registered as any plugin's are."""

import tomllib
from collections.abc import Iterator
from pathlib import Path

from dpn_plugin.plugins.hookspecs import Entry, hookimpl

__all__: list[str] = []


@hookimpl
def dpn_suites() -> Iterator[Entry]:
    """An entry for every TOML file beside this module."""
    for path in sorted(Path(__file__).parent.glob("*.toml")):
        yield Entry(path.stem, path, tomllib.loads(path.read_text(encoding="utf-8"))["title"])
