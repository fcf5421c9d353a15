"""Plugins: the hooks, the plugins that are installed, and their entries by name."""

from dpn_plugin.plugins import registry
from dpn_plugin.plugins.bridges import extend_host
from dpn_plugin.plugins.code_identity import code_identity
from dpn_plugin.plugins.discovery import (
    ALLOW_LIST,
    Source,
    installed_sources,
    reason,
)
from dpn_plugin.plugins.hookspecs import GROUP, KINDS, Entry, hookimpl
from dpn_plugin.plugins.host_status import autoload_status, host_problems
from dpn_plugin.plugins.manager import Plugin, plugins
from dpn_plugin.plugins.options import allowed_options, check_numbers, check_options, takes
from dpn_plugin.plugins.pytorch_ood_losses import loss_name
from dpn_plugin.plugins.registry import (
    create_loss,
    list_backbones,
    list_datasets,
    list_detectors,
    list_losses,
    list_methods,
    list_suites,
)

__all__ = [
    "ALLOW_LIST",
    "GROUP",
    "KINDS",
    "Entry",
    "Plugin",
    "Source",
    "allowed_options",
    "autoload_status",
    "check_numbers",
    "check_options",
    "code_identity",
    "create_loss",
    "extend_host",
    "hookimpl",
    "host_problems",
    "installed_sources",
    "list_backbones",
    "list_datasets",
    "list_detectors",
    "list_losses",
    "list_methods",
    "list_suites",
    "loss_name",
    "plugins",
    "reason",
    "registry",
    "takes",
]
