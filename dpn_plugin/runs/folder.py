"""What a run folder may hold: the same run, another one, or files that no run wrote."""

import os
import shutil
import warnings
from collections.abc import Iterable
from contextlib import suppress
from importlib.metadata import version
from pathlib import Path
from typing import Any

from dpn_plugin._distributed import Processes
from dpn_plugin._files import check_folder, remove_abandoned
from dpn_plugin._records import DamagedRecord
from dpn_plugin.errors import UserError
from dpn_plugin.runs.config import TrainConfig
from dpn_plugin.runs.method_options import method_of, training_code
from dpn_plugin.runs.record import (
    CHECKPOINTS,
    PACKAGES,
    RUN_FILE,
    RunRecord,
    read_run_record,
)

#: decoded images of a training that is under way
CACHE = "cache"
HELD_OUT_FILE = "held_out.safetensors"
#: what a run writes besides its record, weights and checkpoints
_FILES = ("history.csv", "curves.png", HELD_OUT_FILE, "evaluation.json", "samples.json")


def load_or_create_record(
    folder: Path, config: TrainConfig, processes: Processes, *, force: bool, is_ours: bool = False
) -> RunRecord:
    """
    Return the record of this configuration in the folder, or a new one if there is none.

    Nothing is written or removed yet, because the configuration may still prove to be wrong.

    :param folder: the run's folder
    :param config: what is asked for
    :param processes: the processes that are going to train it
    :param force: whether another run may be replaced
    :param is_ours: whether the folder is known to be a run folder, though it may hold other files
    :raises UserError: if the folder holds another run, a record that cannot be read, or files that
        no run wrote
    """
    try:
        record = read_run_record(folder)
    except DamagedRecord as error:
        if not force:
            raise UserError(f"{error} Use another folder, or --force to replace it.") from error
        record = None
    if not is_ours and not os.path.exists(folder / RUN_FILE):
        check_folder(folder, "run", ignored=[folder / CACHE])
    code = training_code(config)
    if record is not None:
        changes = describe_changes(config, record.config)
        if changes and not force:
            raise UserError(
                f"{folder} holds another run ({changes}). Use another folder, or --force to "
                "replace it."
            )
        if not changes and record.code == code:
            record.config = config  # the weights file that it starts from may have moved
            return record
        if not changes:
            warnings.warn(
                f"The code of {_changed(code, record.code)} is not that of the run in {folder}; "
                "it is trained again."
            )
    return RunRecord(
        config=config,
        versions={name: version(name) for name in PACKAGES},
        code=code,
        device=str(processes.device),
        processes=processes.world,
    )


def describe_changes(wanted: TrainConfig, found: TrainConfig, most: int = 4) -> str:
    """Return how two configurations differ, as ``key: found -> wanted``; empty if they do not."""
    changes = _differences(wanted.identity(), found.identity())
    more = f" and {len(changes) - most} more" if len(changes) > most else ""
    return "; ".join(changes[:most]) + more


def remove_leftovers(folder: Path, record: RunRecord) -> None:
    """
    Remove the files of another run that ``record`` replaces, and temporary files of processes that
    were killed. Files that no run wrote stay.
    """
    if not os.path.isdir(folder):  # a path that cannot be a folder is reported when it is written
        return
    try:
        found = read_run_record(folder)
    except DamagedRecord:  # it is not known which weights are ours
        remove_checkpoints(folder, record.config)
        (folder / HELD_OUT_FILE).unlink(missing_ok=True)
    else:
        if found is not None and (found.config.identity(), found.code) != (
            record.config.identity(),
            record.code,
        ):
            remove_checkpoints(folder, found.config)
            _remove_files(folder, found.networks)
    remove_abandoned(folder)


def remove_run(folder: Path, config: TrainConfig) -> None:
    """Remove the files of a run, and its folder if nothing else is in it."""
    remove_checkpoints(folder, config)
    _remove_files(folder, [network.name for network in method_of(config).trained_networks])
    (folder / RUN_FILE).unlink(missing_ok=True)
    with suppress(OSError):  # it holds other files, or does not exist
        folder.rmdir()


def remove_checkpoints(folder: Path, config: TrainConfig) -> None:
    """Remove the checkpoints of a run; other files in their folder stay."""
    for network in method_of(config).trained_networks:
        shutil.rmtree(folder / CHECKPOINTS / network.name, ignore_errors=True)
    with suppress(OSError):  # it holds other files, or does not exist
        (folder / CHECKPOINTS).rmdir()


def remove_cache(folder: Path) -> None:
    """Remove the decoded images of a run; other files in their folder stay."""
    for path in (folder / CACHE / "index", *(folder / CACHE).glob("*.u8")):
        path.unlink(missing_ok=True)
    with suppress(OSError):  # it holds other files, or does not exist
        (folder / CACHE).rmdir()


def _remove_files(folder: Path, networks: Iterable[str]) -> None:
    """Remove the weights of networks, and what was computed from them."""
    for file in (*(f"{name}.safetensors" for name in networks), *_FILES):
        (folder / file).unlink(missing_ok=True)


def _changed(code: dict[str, str], before: dict[str, str]) -> str:
    names = [name for name in {**before, **code} if code.get(name) != before.get(name)]
    return " and ".join(names)


def _differences(ours: dict[str, Any], theirs: dict[str, Any], prefix: str = "") -> list[str]:
    found = []
    for key in sorted(ours.keys() | theirs.keys()):
        mine, other = ours.get(key), theirs.get(key)
        if isinstance(mine, dict) and isinstance(other, dict):
            found += _differences(mine, other, f"{prefix}{key}.")
        elif mine != other:
            found.append(f"{prefix}{key}: {other!r} -> {mine!r}")
    return found
