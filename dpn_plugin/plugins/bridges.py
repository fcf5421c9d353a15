"""
Extend the hosts: pytorch-ood's namespaces, timm's losses and its registry of models.

Neither host looks for plugins, and neither is imported just to extend it. ``dpn_plugin_autoload``
calls :func:`extend_host` at the end of the import of each.
"""

from collections.abc import Callable, Iterable
from functools import wraps
from importlib import import_module
from types import ModuleType
from typing import Any

from dpn_plugin.errors import UserError
from dpn_plugin.plugins import builtin
from dpn_plugin.plugins.discovery import Source
from dpn_plugin.plugins.hookspecs import Entry
from dpn_plugin.plugins.manager import Plugins, plugins
from dpn_plugin_autoload import is_being_imported, when_imported

_DETECTORS = "dpn_plugin.detectors"
_LOSSES = "dpn_plugin.losses"
#: a loss without an entry: `dpn_plus` and `dpn_minus` are the two settings of it
_GAP_LOSS = "RepresentationGapLoss"


def extend_host(host: ModuleType) -> None:
    """
    Add our names to a module of a host.

    :param host: one of ``dpn_plugin_autoload.HOSTS``, completely imported
    """
    if host.__name__ == "timm":
        # Not "timm.models": it is imported before `timm` is complete, and a plugin may need it all.
        _register_backbones(host)
    elif host.__name__ == "pytorch_ood.detector":
        _expose(host, _DETECTORS, _names_in(_DETECTORS, builtin.dpn_detectors()))
    else:
        _expose(host, _LOSSES, [_GAP_LOSS, *_names_in(_LOSSES, builtin.dpn_losses())])


def _names_in(module: str, entries: Iterable[Entry]) -> list[str]:
    """Return the names of the factories that a module of ours provides."""
    factories = [str(entry.factory).partition(":") for entry in entries]
    return [name for where, _, name in factories if where == module]


def _expose(host: ModuleType, module: str, names: list[str]) -> None:
    """
    Make names of a module available in ``host``; the module is imported on first access.

    Importing it now would be a circular import: its classes derive from the host's. Python uses
    ``__getattr__`` of a module's class last, after its attributes and its own ``__getattr__``, so
    names that the host defines are not replaced.

    :param host: the module to extend
    :param module: the module that defines the names
    :param names: the names
    """
    exposed = [name for name in names if name not in vars(host)]

    class Extended(type(host)):  # type: ignore[misc]
        def __getattr__(self, name: str) -> Any:
            if name in exposed:
                return getattr(import_module(module), name)
            raise AttributeError(f"module {self.__name__!r} has no attribute {name!r}")

        def __dir__(self) -> list[str]:
            return sorted({*super().__dir__(), *exposed})

    host.__class__ = Extended
    if "__all__" in vars(host):
        vars(host)["__all__"] = [*vars(host)["__all__"], *exposed]


def _register_backbones(timm: ModuleType) -> None:
    found = plugins()
    for name, (entry, source) in found.entries("backbones").items():
        if name == entry.name.lower():  # not an alias
            _register_backbone(timm.models, entry, found, source)
    # A plugin whose module imports timm is in the middle of its own import now.
    for module in found.unfinished:
        when_imported(module, lambda _: _register_backbones(timm))


def _register_backbone(models: Any, entry: Entry, found: Plugins, source: Source) -> None:
    def register(_: ModuleType | None = None) -> None:
        with found.recording(source, f"backbone {entry.name!r} is not known to timm"):
            _register(models, entry)

    module = entry.factory.partition(":")[0] if isinstance(entry.factory, str) else ""
    if is_being_imported(module):
        when_imported(module, register)
    else:
        register()


def _register(models: Any, entry: Entry) -> None:
    if models.is_model(entry.name):
        # Registered by its own decorator, unless it is a model of timm.
        if models.model_entrypoint(entry.name).__module__.startswith("timm."):
            raise UserError("timm has a model of that name already")
        return
    factory = entry.resolve()
    if not callable(factory):
        raise TypeError(f"its factory is a {type(factory).__name__}, not a function")
    if not models.is_model(entry.name):
        models.register_model(_named(entry.name, factory))


def _named(name: str, factory: Callable[..., Any]) -> Callable[..., Any]:
    # timm registers a function under its own __name__.
    @wraps(factory)
    def create(*arguments: Any, **options: Any) -> Any:
        return factory(*arguments, **options)

    create.__name__ = name
    return create
