"""``run.json``: what a folder holds, how it came about, and whether it may be continued."""

import os
import shutil
from importlib.metadata import version
from pathlib import Path
from typing import Any

from dpn_plugin.errors import UserError
from dpn_plugin.files import write_text
from dpn_plugin.sealed import sealed, unsealed
from dpn_plugin.training.config import TrainConfig, differences
from dpn_plugin.training.processes import Processes
from dpn_plugin.training.shape import has_known_shape

__all__ = ["CHECKPOINTS", "RECORD", "known_record", "read_record", "sweep", "write_record"]

RECORD = "run.json"
CHECKPOINTS = "checkpoints"
FORMAT = 1
PACKAGES = ("dpn-plugin", "torch", "torchvision", "timm", "pytorch-ood", "numpy", "safetensors")


def known_record(
    out: Path, config: TrainConfig, processes: Processes, force: bool
) -> dict[str, Any]:
    """
    Nothing is written or removed yet: what the user asked for may still prove to be wrong.

    :param out: the run's folder
    :param config: what is asked for
    :param force: whether another run may be replaced
    :return: the record of this configuration in the folder, a new one if there is none
    :raises UserError: if another configuration is there
    """
    asked = config.model_dump(mode="json")
    try:
        record = read_record(out)
    except UserError:
        if not force:
            raise
        record = {}
    changed = differences(asked, record["config"]) if "config" in record else []
    if changed and not force:
        more = f" and {len(changed) - 4} more" if len(changed) > 4 else ""
        raise UserError(
            f"{out} holds another run ({'; '.join(changed[:4])}{more}). "
            "Use another folder, or --force to replace it."
        )
    if record and not changed:
        return record
    return {
        "format": FORMAT,
        "config": asked,
        "networks": {},
        "finished": False,
        "versions": {name: version(name) for name in PACKAGES},
        "device": str(processes.device),
        "processes": processes.world,
    }


def sweep(out: Path, record: dict[str, Any]) -> None:
    """
    Remove what another run left if ``record`` replaces it, and what a killed process had not
    finished writing. Files that no run wrote stay.
    """
    if not os.path.isdir(out):  # if it cannot be one, whoever writes to it says so
        return
    try:
        found = read_record(out)
    except UserError:
        found = {"networks": {}}
    if found and found.get("config") != record["config"]:
        shutil.rmtree(out / CHECKPOINTS, ignore_errors=True)
        for name in (*found["networks"], "held_out"):
            (out / f"{name}.safetensors").unlink(missing_ok=True)
    for name in (RECORD, "history.csv", "curves.png", "*.safetensors"):
        for path in out.glob(f".{name}.*.tmp"):  # as dpn_plugin.files.replacing calls them
            path.unlink(missing_ok=True)


def write_record(out: Path, record: dict[str, Any]) -> None:
    """Write ``run.json``."""
    write_text(out / RECORD, sealed(record, indent=1))


def read_record(out: Path) -> dict[str, Any]:
    """
    :param out: the run's folder
    :return: the record in the folder; empty if there is none
    :raises UserError: if it is damaged
    """
    path = out / RECORD
    try:
        # records of the first days have no seal
        record = unsealed(path.read_text("utf-8"), required=False)
    except FileNotFoundError:
        return {}
    except (OSError, ValueError) as error:
        raise _unreadable(path) from error
    if not has_known_shape(record):
        raise _unreadable(path)
    return record


def _unreadable(path: Path) -> UserError:
    return UserError(f"{path} is not the record of a run; use another folder or --force.")
