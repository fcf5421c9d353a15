"""Find plugins: the entry points of installed distributions, those of this package first."""

import os
from dataclasses import dataclass
from difflib import get_close_matches
from importlib import metadata

from dpn_plugin.errors import choices
from dpn_plugin.plugins.hookspecs import GROUP

#: The environment variable with the names of the entry points to load; empty for none.
ALLOW_LIST = "DPN_PLUGINS"

OWN_PACKAGE = "dpn-plugin"
NOT_INSTALLED = (
    "its entry points are not installed, so none of its entries are available; install it (again) "
    "with pip install, or pip install -e in a clone"
)


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


def installed_sources(allowed: str | None) -> tuple[list[Source], list[Failure]]:
    """
    Return the plugins of all distributions, sorted by name, and the failures to find some.

    Those of this package come first, so that nobody takes their names.

    :param allowed: names of entry points, comma-separated; ``None`` for all, ``""`` for none. It
        does not apply to the plugins of this package.
    """
    sources, failures = _all_installed()
    own = [source for source in sources if source.package == OWN_PACKAGE]
    others = [source for source in sources if source.package != OWN_PACKAGE]
    if not own:
        failures.append(Failure(OWN_PACKAGE, "", "", NOT_INSTALLED))
    if allowed is not None:
        wanted = [name.strip() for name in allowed.split(",") if name.strip()]
        known = [source.point.name for source in others]
        # Without any plugin of others, their failures are of no interest.
        failures = [each for each in failures if wanted or each.package == OWN_PACKAGE]
        failures += [_not_installed(name, known) for name in wanted if name not in known]
        others = [source for source in others if source.point.name in wanted]
    return [*own, *others], failures


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
