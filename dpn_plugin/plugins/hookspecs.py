"""The hooks that a plugin may implement, and the :class:`Entry` objects that hooks yield."""

import re
from collections.abc import Iterable
from dataclasses import dataclass
from importlib import import_module
from typing import Any

import pluggy

#: pluggy's project name, and the group of entry points in which plugins are found.
GROUP = "dpn_plugin"

#: The kinds of entries, and the singular of each. The hook of a kind is ``dpn_<kind>``.
KINDS = {
    "detectors": "detector",
    "losses": "loss",
    "methods": "method",
    "backbones": "backbone",
    "datasets": "data source",
    "suites": "suite",
}

hookspec = pluggy.HookspecMarker(GROUP)
hookimpl = pluggy.HookimplMarker(GROUP)

_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._+-]*")
_REFERENCE = re.compile(r"[A-Za-z_]\w*(\.[A-Za-z_]\w*)*:[A-Za-z_]\w*")


@dataclass(frozen=True)
class Entry:
    """
    An object that can be selected by name.

    :param name: the name, e.g. ``"dpn-mi"``; letters, digits and ``. _ + -``
    :param factory: the object, or ``"package.module:Name"``, which is imported on first use
    :param summary: one line for listings
    :param aliases: other names for the same thing
    """

    name: str
    factory: Any
    summary: str
    aliases: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        # tuple() would split a string into one-letter aliases.
        if isinstance(self.aliases, str):
            raise TypeError(f"Entry {self.name!r}: aliases={self.aliases!r} must be a tuple.")
        object.__setattr__(self, "aliases", tuple(self.aliases))
        for name in (self.name, *self.aliases):
            if not isinstance(name, str) or not _NAME.fullmatch(name):
                raise ValueError(
                    f"Entry name {name!r} must be letters, digits and any of '. _ + -', "
                    "and begin with a letter or digit."
                )
        if not isinstance(self.summary, str):
            raise TypeError(f"Entry {self.name!r}: summary={self.summary!r} must be a string.")
        if isinstance(self.factory, str) and not _REFERENCE.fullmatch(self.factory):
            raise ValueError(
                f"Entry {self.name!r}: factory={self.factory!r} must be an object or read "
                "'package.module:Name'."
            )

    def resolve(self) -> Any:
        """Return the factory; a string is imported first."""
        if not isinstance(self.factory, str):
            return self.factory
        module, _, attribute = self.factory.partition(":")
        return getattr(import_module(module), attribute)


@hookspec
def dpn_detectors() -> Iterable[Entry]:  # type: ignore[empty-body]
    """Detectors: ``factory(model, **options)`` returns a ``pytorch_ood.api.Detector``."""


@hookspec
def dpn_losses() -> Iterable[Entry]:  # type: ignore[empty-body]
    """Losses: ``factory(**options)`` is a module of ``(logits, target)``; target < 0 is OOD."""


@hookspec
def dpn_methods() -> Iterable[Entry]:  # type: ignore[empty-body]
    """Training methods: the factory is a ``Method``."""


@hookspec
def dpn_backbones() -> Iterable[Entry]:  # type: ignore[empty-body]
    """Backbones: functions as ``timm.models.register_model`` takes them."""


@hookspec
def dpn_datasets() -> Iterable[Entry]:  # type: ignore[empty-body]
    """Data sources: the name is the scheme of ``source = "scheme:..."`` in a suite file."""


@hookspec
def dpn_suites() -> Iterable[Entry]:  # type: ignore[empty-body]
    """Benchmark suites: the factory is the path of a TOML file."""
