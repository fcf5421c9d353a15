"""The hooks a plugin may implement, and the :class:`Entry` that it gives."""

import re
from collections.abc import Iterable
from dataclasses import dataclass
from importlib import import_module
from typing import Any

import pluggy

__all__ = ["GROUP", "KINDS", "Entry", "hookimpl", "hookspec"]

#: pluggy's project name and the group of entry points that plugins are found by.
GROUP = "dpn_plugin"

#: What plugins give, and the word for one of it. The hook of a kind is ``dpn_<kind>``.
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
    Something that can be picked by name.

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
        # A lone string would pass for a sequence of one-letter aliases.
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
        """:return: the factory itself; a string is imported now"""
        if not isinstance(self.factory, str):
            return self.factory
        module, _, attribute = self.factory.partition(":")
        return getattr(import_module(module), attribute)


@hookspec
def dpn_detectors() -> Iterable[Entry]:  # type: ignore[empty-body]
    """Detectors: ``factory(model, **options)`` gives a ``pytorch_ood.api.Detector``."""


@hookspec
def dpn_losses() -> Iterable[Entry]:  # type: ignore[empty-body]
    """Losses: ``factory(**options)`` gives a module for ``(logits, target)``; target < 0 is OOD."""


@hookspec
def dpn_methods() -> Iterable[Entry]:  # type: ignore[empty-body]
    """Training methods."""


@hookspec
def dpn_backbones() -> Iterable[Entry]:  # type: ignore[empty-body]
    """Backbones: functions as ``timm.models.register_model`` takes them."""


@hookspec
def dpn_datasets() -> Iterable[Entry]:  # type: ignore[empty-body]
    """Data sources: the name is the scheme of ``source = "scheme:..."`` in a suite file."""


@hookspec
def dpn_suites() -> Iterable[Entry]:  # type: ignore[empty-body]
    """Benchmark suites: the factory is the path of a TOML file."""
