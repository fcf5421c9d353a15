"""
Extend the hosts: pytorch-ood's namespaces, and timm's registry of models.

Neither host looks for plugins, and neither is imported just to extend it. So each host is extended
when it is imported, or at once if it already is.
"""

from collections.abc import Callable
from functools import cache, partial, wraps
from importlib import import_module
from types import ModuleType
from typing import Any

from wrapt import register_post_import_hook

from dpn_plugin.errors import UserError
from dpn_plugin.plugins.hookspecs import Entry
from dpn_plugin.plugins.manager import being_imported, plugins

_DETECTORS = (
    "DifferentialEntropy",
    "GaussianKL",
    "MahalanobisPP",
    "MaxProbability",
    "MutualInformation",
    "Precision",
    "PredictiveEntropy",
    "RMDPP",
)
_LOSSES = (
    "EvidentialLoss",
    "ForwardKLLoss",
    "RepresentationGapLoss",
    "ReverseKLLoss",
    "dpn_minus",
    "dpn_plus",
)


@cache
def extend_hosts() -> None:
    """Extend pytorch-ood and timm, now or when they are imported."""
    for host, module, names in (
        ("pytorch_ood.detector", "dpn_plugin.detectors", _DETECTORS),
        ("pytorch_ood.loss", "dpn_plugin.losses", _LOSSES),
    ):
        register_post_import_hook(partial(_expose, module=module, names=names), host)
    # Not "timm.models": it is imported before `timm` is complete, and a plugin may need all of it.
    register_post_import_hook(_register_backbones, "timm")


def _expose(host: ModuleType, module: str, names: tuple[str, ...]) -> None:
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
        if name != entry.name.lower():  # an alias
            continue
        with found.recording(source, f"backbone {entry.name!r} is not known to timm"):
            _register_backbone(timm.models, entry)


def _register_backbone(models: Any, entry: Entry) -> None:
    if models.is_model(entry.name):
        # Registered by its own decorator, unless it is a model of timm.
        if models.model_entrypoint(entry.name).__module__.startswith("timm."):
            raise UserError("timm has a model of that name already")
        return
    # A module in the middle of its import, which imports timm, registers its models itself.
    if isinstance(entry.factory, str) and being_imported(entry.factory.partition(":")[0]):
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
