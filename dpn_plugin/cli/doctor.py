"""``dpn doctor``: the versions, plugins, hosts and devices that belong in every bug report."""

import platform
import re
from importlib import metadata
from typing import Any

import typer

from dpn_plugin import __version__
from dpn_plugin.cli.output import JsonOption, print_json, print_note, print_table
from dpn_plugin.cli.plugins import failure_records, plugin_records, print_plugins
from dpn_plugin.plugins import autoload_status, host_problems, reason

_PROJECT = "dpn-plugin"


def doctor(as_json: JsonOption = False) -> None:
    """
    Show versions, devices and what is missing.

    Ends with 1 if a required package is missing, a host cannot be imported or a plugin failed, with
    0 otherwise.
    """
    # first, because some failures of plugins appear when the hosts are imported
    problems = host_problems()
    versions: dict[str, str | None] = {_PROJECT: __version__, "python": platform.python_version()}
    packages = {name: _version(name) for name in _required()}
    missing = [name for name, version in packages.items() if version is None]
    if as_json:
        print_json(_record(versions | packages, problems, missing))
    else:
        _print(versions | packages, problems, missing)
    if missing or problems or failure_records():
        raise typer.Exit(1)


def _record(
    versions: dict[str, str | None], problems: dict[str, str], missing: list[str]
) -> dict[str, Any]:
    enabled, detail = autoload_status()
    return {
        "versions": versions,
        "platform": platform.platform(),
        "devices": _devices(),
        "autoload": {"enabled": enabled, "detail": detail},
        "hosts": problems,
        "plugins": plugin_records(),
        "failures": failure_records(),
        "missing": missing,
    }


def _print(versions: dict[str, str | None], problems: dict[str, str], missing: list[str]) -> None:
    rows = [(name, version or "missing") for name, version in versions.items()]
    print_table("versions", ("package", "version"), rows)
    typer.echo()
    print_plugins()
    typer.echo()
    print_table("hosts", ("what", "state"), [("autoload", autoload_status()[1]), *problems.items()])
    typer.echo()
    print_table("devices", ("device", "what"), [tuple(each.values()) for each in _devices()])
    if missing:
        print_note(f"Missing. To install: pip install {' '.join(missing)}")


def _required() -> list[str]:
    """Return the packages that dpn-plugin requires, without those of its extras."""
    try:
        requirements = metadata.requires(_PROJECT) or []
    except metadata.PackageNotFoundError:  # run from its sources
        return [_PROJECT]
    always = [each for each in requirements if not re.search(r";.*\bextra\b", each)]
    return [re.split(r"[^\w.-]", each, maxsplit=1)[0] for each in always]


def _version(package: str) -> str | None:
    try:
        return metadata.version(package)
    except metadata.PackageNotFoundError:
        return None


def _devices() -> list[dict[str, str]]:
    # a torch whose libraries do not fit the machine can raise anything; the command reports it
    try:
        import torch
    except Exception as error:
        return [{"device": "none", "what": f"torch cannot be imported ({reason(error)})"}]
    processor = platform.processor() or platform.machine()
    found = {"cpu": f"{processor}, {torch.get_num_threads()} threads"}
    for index in range(torch.cuda.device_count()):
        found[f"cuda:{index}"] = torch.cuda.get_device_name(index)
    if torch.backends.mps.is_available():
        found["mps"] = "Apple GPU"
    return [{"device": name, "what": what} for name, what in found.items()]
