"""Whether the hosts get our names without an import of this package, and which of them did."""

import os
from importlib import import_module, metadata

import dpn_plugin_autoload
from dpn_plugin.plugins.discovery import reason

_TORCH_GROUP = "torch.backends"
_TORCH_SWITCH = "TORCH_DEVICE_BACKEND_AUTOLOAD"


def autoload_status() -> tuple[bool, str]:
    """Return whether ``import torch`` prepares the hosts for our names, and a sentence about it."""
    instead = "programs get the names by `import dpn_plugin`"
    if (value := os.environ.get(dpn_plugin_autoload.SWITCH, "")).lower() in dpn_plugin_autoload.OFF:
        return False, f"off, because {dpn_plugin_autoload.SWITCH}={value}; {instead}"
    # torch compares with "1", whatever else the value may be
    if (value := os.environ.get(_TORCH_SWITCH, "1")) != "1":
        return False, f"off, because {_TORCH_SWITCH}={value}; {instead}"
    if not _is_installed():
        return False, f"off, because the installation has no entry point for torch; {instead}"
    return True, "on: pytorch-ood and timm get the names when they are imported"


def host_problems() -> dict[str, str]:
    """Import the hosts, which takes seconds, and return why some of them cannot be imported."""
    problems = {}
    for host in dpn_plugin_autoload.HOSTS:
        # A library that does not fit the machine can raise anything.
        try:
            import_module(host)
        except Exception as error:
            problems[host] = f"cannot be imported ({reason(error)})"
    return problems


def _is_installed() -> bool:
    module = dpn_plugin_autoload.__name__
    return any(point.module == module for point in metadata.entry_points(group=_TORCH_GROUP))
