"""Find plugins: those of this package, then those of installed distributions."""

import os
from dataclasses import dataclass
from difflib import get_close_matches
from importlib import metadata

from dpn_plugin.errors import choices
from dpn_plugin.plugins.hookspecs import GROUP

#: The environment variable with the names of the entry points to load; empty for none.
ALLOW_LIST = "DPN_PLUGINS"

OWN_PACKAGE = "dpn-plugin"
_OWN_MODULES = {
    "builtin": "dpn_plugin.plugins.builtin",
    "pytorch-ood": "dpn_plugin.plugins.pytorch_ood_source",
    "suites": "benchmark_suites",
}


@dataclass(frozen=True)
class Source:
    """
    An entry point and the distribution that declares it.

    :param package: the name of the distribution
    :param version: its version
    :param point: the entry point, not loaded
    """

    package: str
    version: str
    point: metadata.EntryPoint

    def __str__(self) -> str:
        return f"{self.package} {self.version}".rstrip()


@dataclass(frozen=True)
class Failure:
    """
    A problem with a plugin, and the distribution that declares it.

    :param package: the name of the distribution
    :param version: its version
    :param plugin: the name of the entry point
    :param message: what happened
    """

    package: str
    version: str
    plugin: str
    message: str


def builtin_sources() -> list[Source]:
    """Return this package's own plugins, described like those of other distributions."""
    # Not in pyproject.toml, so that they are found in a source tree that is not installed, too.
    from dpn_plugin import __version__

    return [
        Source(OWN_PACKAGE, __version__, metadata.EntryPoint(name, module, GROUP))
        for name, module in _OWN_MODULES.items()
    ]


def installed_sources(allowed: str | None) -> tuple[list[Source], list[Failure]]:
    """
    Return the plugins of other distributions, sorted by name, and the failures to find some.

    :param allowed: names of entry points, comma-separated; ``None`` for all, ``""`` for none
    """
    if allowed is not None and not allowed.strip(", "):
        return [], []
    sources, failures = _all_installed()
    if allowed is None:
        return sources, failures
    wanted = [name.strip() for name in allowed.split(",") if name.strip()]
    known = [source.point.name for source in sources]
    failures += [_not_installed(name, known) for name in wanted if name not in known]
    return [source for source in sources if source.point.name in wanted], failures


def allow_list() -> str | None:
    """Return the value of the environment variable, ``None`` if it is not set."""
    return os.environ.get(ALLOW_LIST)


def reason(error: BaseException) -> str:
    """Return type and text of an error, such as ``"ImportError: no such module"``."""
    try:
        text = " ".join(str(error).split())
    except Exception:  # __str__ of a plugin's exception class may raise
        text = ""
    return f"{type(error).__name__}: {text}" if text else type(error).__name__


def _all_installed() -> tuple[list[Source], list[Failure]]:
    sources, failures = [], []
    for package, distribution in sorted(_distributions().items()):
        version = distribution.metadata["Version"] or ""
        # One by one, because metadata.entry_points() raises if a single file is malformed.
        try:
            points = distribution.entry_points.select(group=GROUP)
        except Exception as error:
            message = f"entry_points.txt cannot be read ({reason(error)})"
            failures.append(Failure(package, version, "", message))
        else:
            sources += [Source(package, version, point) for point in sorted(points)]
    return sources, failures


def _distributions() -> dict[str, metadata.Distribution]:
    found: dict[str, metadata.Distribution] = {}
    for distribution in metadata.distributions():
        if f"[{GROUP}]" in (distribution.read_text("entry_points.txt") or ""):
            # The first one on the path is the one that is imported.
            found.setdefault(distribution.metadata["Name"] or "unnamed package", distribution)
    return found


def _not_installed(name: str, known: list[str]) -> Failure:
    close = get_close_matches(name, known, n=1)
    hint = f"; did you mean {choices(close)}?" if close else ""
    return Failure(ALLOW_LIST, "", name, f"no installed package has this entry point{hint}")
