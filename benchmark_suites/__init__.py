"""The suites of dpn-plugin: one TOML file each, registered like those of any plugin."""

import tomllib
from collections.abc import Iterator
from pathlib import Path

from dpn_plugin.plugins import Entry, hookimpl

__all__: list[str] = []


@hookimpl
def dpn_suites() -> Iterator[Entry]:
    """Yield an entry for every TOML file in this folder."""
    for path in sorted(Path(__file__).parent.glob("*.toml")):
        yield Entry(path.stem, path, tomllib.loads(path.read_text(encoding="utf-8"))["title"])
