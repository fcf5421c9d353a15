"""
The hosts learn our names: pytorch-ood's namespaces, and timm's registry of models.

Neither host looks for plugins, and neither may be imported for the sake of it. So each is extended
at the moment somebody imports it, or now if somebody has.
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

__all__ = ["install"]

_DETECTORS = (
    "DifferentialEntropy",
    "GaussianKL",
    "MaxProbability",
    "MutualInformation",
    "Precision",
    "PredictiveEntropy",
)
_LOSSES = ("EvidentialLoss", "ForwardKLLoss", "RepresentationGapLoss", "ReverseKLLoss")


@cache
def install() -> None:
    """Extend pytorch-ood and timm, now or when they are imported."""
    for host, home, names in (
        ("pytorch_ood.detector", "dpn_plugin.detectors", _DETECTORS),
        ("pytorch_ood.loss", "dpn_plugin.losses", _LOSSES),
    ):
        register_post_import_hook(partial(_lend, home=home, names=names), host)
    # Not "timm.models": that is ready before `timm` is, and a plugin may need the whole of it.
    register_post_import_hook(_register_backbones, "timm")


def _lend(host: ModuleType, home: str, names: tuple[str, ...]) -> None:
    """
    Let ``host`` find ``names`` in the module ``home``, which is imported when one is asked for.

    Importing it now would go in a circle: our classes derive from the host's. Python asks the
    class of a module last, after its attributes and its own ``__getattr__``, so whatever the host
    defines stays the host's.

    :param host: the module to extend
    :param home: the module that has the names
    :param names: the names
    """
    lent = [name for name in names if name not in vars(host)]

    class Extended(type(host)):  # type: ignore[misc]
        def __getattr__(self, name: str) -> Any:
            if name in lent:
                return getattr(import_module(home), name)
            raise AttributeError(f"module {self.__name__!r} has no attribute {name!r}")

        def __dir__(self) -> list[str]:
            return sorted({*super().__dir__(), *lent})

    host.__class__ = Extended
    if "__all__" in vars(host):
        vars(host)["__all__"] = [*vars(host)["__all__"], *lent]


def _register_backbones(timm: ModuleType) -> None:
    found = plugins()
    for name, (entry, source) in found.entries("backbones").items():
        if name != entry.name.lower():  # an alias
            continue
        with found.recording(source, f"backbone {entry.name!r} is not known to timm"):
            _register_backbone(timm.models, entry)


def _register_backbone(models: Any, entry: Entry) -> None:
    if models.is_model(entry.name):
        # Already there by its own decorator, unless timm has always had it.
        if models.model_entrypoint(entry.name).__module__.startswith("timm."):
            raise UserError("timm has a model of that name already")
        return
    # A module that is importing timm right now registers its models when it comes to them.
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
