"""
Dirichlet Prior Networks by name for pytorch-ood and timm.

Importing this package takes milliseconds: torch and the hosts are imported on first use, and the
hosts' namespaces are extended when somebody imports them.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

from dpn_plugin.plugins.bridges import install as _extend_hosts
from dpn_plugin.plugins.hookspecs import Entry, hookimpl

if TYPE_CHECKING:
    from dpn_plugin import functional
    from dpn_plugin.plugins.registry import (
        create_detector,
        create_loss,
        list_backbones,
        list_datasets,
        list_detectors,
        list_losses,
        list_methods,
        list_suites,
    )

__version__ = "0.1.0"

__all__ = [
    "Entry",
    "__version__",
    "create_detector",
    "create_loss",
    "functional",
    "hookimpl",
    "list_backbones",
    "list_datasets",
    "list_detectors",
    "list_losses",
    "list_methods",
    "list_suites",
]

_LAZY = {name: "dpn_plugin.plugins.registry" for name in __all__ if name[:5] in ("creat", "list_")}


def __getattr__(name: str) -> Any:
    if name == "functional":
        return import_module("dpn_plugin.functional")
    if name in _LAZY:
        return getattr(import_module(_LAZY[name]), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


_extend_hosts()
