"""
Extend pytorch-ood and timm when they are imported.

torch calls :func:`autoload` at the end of ``import torch`` in every program of an environment in
which dpn-plugin is installed (entry point of the group ``torch.backends``). So this module is tiny
and not a part of ``dpn_plugin``, which is imported when a host is. It never raises: torch would
fail to import.
"""

import os
import sys
from collections.abc import Callable
from importlib.machinery import ModuleSpec
from types import ModuleType
from typing import Any

#: the modules that get names of ours
HOSTS = ("timm", "timm.loss", "pytorch_ood.detector", "pytorch_ood.loss")
#: the environment variable that switches :func:`autoload` off, and the values that do
SWITCH = "DPN_AUTOLOAD"
OFF = ("0", "false", "no", "off")

#: name of the module and error of every action that failed; `dpn plugins` shows them
failures: list[tuple[str, Exception]] = []

Action = Callable[[ModuleType], object]
_actions: dict[str, list[Action]] = {}
#: modules whose import is over but for our actions
_imported: set[str] = set()


def autoload() -> None:
    """Have the hosts extended when they are imported, unless ``DPN_AUTOLOAD=0``."""
    if os.environ.get(SWITCH, "").lower() not in OFF:
        extend_hosts()


def extend_hosts() -> None:
    """Have the hosts extended when they are imported, or now if they already are."""
    if _extend not in _actions.get(HOSTS[0], ()):
        for host in HOSTS:
            when_imported(host, _extend)


def when_imported(name: str, action: Action) -> None:
    """
    Call ``action(module)`` as soon as a module is completely imported.

    That is now, at the end of the import that is going on, or at the end of a later one. During
    ``import timm``, torch is imported while ``timm`` is only half initialised.

    :param name: the full name of the module
    :param action: what to call; its exceptions are kept in ``failures``
    """
    try:
        _actions.setdefault(name, []).append(action)
        if not any(isinstance(finder, _Finder) for finder in sys.meta_path):
            sys.meta_path.insert(0, _Finder())
        module = sys.modules.get(name)
        if module is not None and is_being_imported(name):
            _watch(module.__spec__)
        elif module is not None:
            _call(action, module)
    except Exception as error:
        failures.append((name, error))


def is_being_imported(name: str) -> bool:
    """
    Return whether a module is in the middle of its import.

    :param name: the full name of the module
    """
    # The import system itself uses this flag; there is no public one.
    spec = getattr(sys.modules.get(name), "__spec__", None)
    return bool(getattr(spec, "_initializing", False)) and name not in _imported


class _Finder:
    """Finds modules that are waited for, like the finders behind it, and watches their import."""

    def find_spec(self, name: str, path: Any = None, target: Any = None) -> ModuleSpec | None:
        if name not in _actions:
            return None
        for finder in sys.meta_path:
            find = None if finder is self else getattr(finder, "find_spec", None)
            spec = find and find(name, path, target)
            if spec is not None:
                _watch(spec)
                return spec
        return None


def _watch(spec: Any) -> None:
    """
    Run the actions of a module at the end of its import.

    The import system then sets a flag of the spec. A wrapper around the loader would be too late
    for a module whose loader is at work, and others would see it: ``inspect``, package resources.
    """
    plain = type(spec)
    if getattr(plain, "is_watched", False):
        return

    class Watched(plain):  # type: ignore[misc, valid-type]
        is_watched = True

        @property
        def _initializing(self) -> bool:
            return bool(self.__dict__.get("_initializing", False))

        @_initializing.setter
        def _initializing(self, value: bool) -> None:
            # Other threads wait for the module until the flag is off, so the actions come first.
            try:
                if not value:
                    self.__class__ = plain
                    _run(self.name)
            finally:
                self.__dict__["_initializing"] = value

    try:
        spec.__class__ = Watched
    except TypeError as error:  # a spec of an unusual class; the host is imported nevertheless
        failures.append((spec.name, error))


def _run(name: str) -> None:
    module = sys.modules.get(name)
    if module is None:  # its import failed
        return
    _imported.add(name)
    try:
        for action in list(_actions[name]):
            _call(action, module)
    finally:
        _imported.discard(name)


def _call(action: Action, module: ModuleType) -> None:
    try:
        action(module)
    except Exception as error:
        failures.append((module.__name__, error))


def _extend(host: ModuleType) -> None:
    from dpn_plugin.plugins import extend_host

    extend_host(host)
