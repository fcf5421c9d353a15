"""
Dirichlet Prior Networks by name for pytorch-ood and timm.

Importing this package takes milliseconds: torch and the hosts are imported on first use, and the
hosts' namespaces are extended when the hosts are imported. torch's autoload does the latter without
an import of this package, see ``dpn_plugin_autoload``.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

from dpn_plugin.plugins import (
    Entry,
    create_loss,
    hookimpl,
    list_backbones,
    list_datasets,
    list_detectors,
    list_losses,
    list_methods,
    list_suites,
)
from dpn_plugin_autoload import extend_hosts as _extend_hosts

if TYPE_CHECKING:
    from dpn_plugin import functional
    from dpn_plugin.deploy import load_bundle
    from dpn_plugin.detectors import create_detector
    from dpn_plugin.evaluation import evaluate_model as evaluate

__version__ = "0.1.0"

__all__ = [
    "Entry",
    "__version__",
    "create_detector",
    "create_loss",
    "evaluate",
    "functional",
    "hookimpl",
    "list_backbones",
    "list_datasets",
    "list_detectors",
    "list_losses",
    "list_methods",
    "list_suites",
    "load_bundle",
]


def __getattr__(name: str) -> Any:
    # these import torch
    if name == "functional":
        return import_module("dpn_plugin.functional")
    if name == "create_detector":
        return import_module("dpn_plugin.detectors").create_detector
    if name == "evaluate":
        return import_module("dpn_plugin.evaluation").evaluate_model
    if name == "load_bundle":
        return import_module("dpn_plugin.deploy").load_bundle
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def __dir__() -> list[str]:
    # the names that __getattr__ loads are not in the namespace yet
    return sorted(__all__)


_extend_hosts()
