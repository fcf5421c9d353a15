"""Checkpoints and weights: whole or absent, verified when read, and without arbitrary pickles."""

import shutil
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import torch
from pydantic import BaseModel
from safetensors import SafetensorError
from safetensors.torch import load_file, save_file
from torch import Tensor

from dpn_plugin._files import cannot_write, creating_folder, file_hash, replacing
from dpn_plugin._records import Record, read_record, write_record
from dpn_plugin.errors import UserError
from dpn_plugin.runs.record import EpochRecord

_STATE = "state.json"
_OPTIMIZER = "optimizer.pt"


class TrainerState(BaseModel):
    """
    Where a training stands, besides weights and optimizer.

    :param step: steps done; orders the checkpoints
    :param best_loss: the lowest held-out loss so far
    :param history: the epochs so far
    :param sums: sums over the steps of the current epoch
    """

    step: int
    best_loss: float | None
    history: list[EpochRecord]
    sums: dict[str, float]


class CheckpointRecord(Record):
    """All of ``state.json``: the state, whose it is, and the SHA-256 of the files beside it."""

    owner: str
    state: TrainerState
    files: dict[str, str]


class Checkpoints:
    """
    The checkpoints of one network.

    The newest undamaged one counts. An older one is kept, so that a damaged file costs no more
    than the time between two checkpoints.

    :param folder: where they are
    :param owner: a hash of everything that decides the training; checkpoints of another owner are
        ignored
    :param seconds_between: the least time between two checkpoints, for trainings whose epochs are
        shorter than a checkpoint takes to reach the disk
    """

    def __init__(self, folder: Path, owner: str, seconds_between: float = 0.0) -> None:
        self.folder, self.owner, self.seconds_between = folder, owner, seconds_between
        self._saved = time.monotonic()

    def is_due(self) -> bool:
        """Return whether enough time has passed since the last checkpoint or the start."""
        return time.monotonic() - self._saved >= self.seconds_between

    def save(
        self,
        state: TrainerState,
        weights: Mapping[str, dict[str, Tensor]],
        optimizer: dict[str, Any],
    ) -> None:
        """
        Save a checkpoint and remove all but the two newest.

        :param state: where the training stands
        :param weights: named sets of tensors
        :param optimizer: its ``state_dict``
        :raises CannotWrite: if it cannot be written; older ones are unchanged
        """
        path = self.folder / f"step-{state.step:09d}"
        try:
            with creating_folder(path, replace=True) as temporary:
                self._write(temporary, state, weights, optimizer)
        except (RuntimeError, SafetensorError) as error:  # how torch and safetensors report ENOSPC
            raise cannot_write(path, error) from error
        self._saved = time.monotonic()
        for old in self._newest_first()[2:]:
            shutil.rmtree(old, ignore_errors=True)

    def find_newest(self) -> Path | None:
        """Return the newest checkpoint that is undamaged and belongs to this training."""
        return next((path for path in self._newest_first() if self._is_valid(path)), None)

    def load(self, path: Path) -> tuple[TrainerState, dict[str, dict[str, Tensor]], Any]:
        """
        Return the state, the sets of weights and the state of the optimizer.

        :param path: what :meth:`find_newest` returned
        """
        state = read_record(path / _STATE, CheckpointRecord).state
        weights = {file.stem: load_file(file) for file in sorted(path.glob("*.safetensors"))}
        optimizer = torch.load(path / _OPTIMIZER, map_location="cpu", weights_only=True)
        return state, weights, optimizer

    def remove(self) -> None:
        """Remove all checkpoints, once the network is trained."""
        shutil.rmtree(self.folder, ignore_errors=True)

    def _newest_first(self) -> list[Path]:
        return sorted(self.folder.glob("step-*"), reverse=True)

    def _is_valid(self, path: Path) -> bool:
        try:
            record = read_record(path / _STATE, CheckpointRecord)
            hashes = record.files.items()
            intact = all(file_hash(path / name) == expected for name, expected in hashes)
            return intact and record.owner == self.owner
        except (OSError, UserError):
            return False

    def _write(
        self,
        folder: Path,
        state: TrainerState,
        weights: Mapping[str, dict[str, Tensor]],
        optimizer: dict[str, Any],
    ) -> None:
        for name, tensors in weights.items():
            save_file(_contiguous(tensors), folder / f"{name}.safetensors")
        # an open file, not a path: torch would replace the system's message by its own
        with (folder / _OPTIMIZER).open("wb") as file:
            torch.save(optimizer, file)
        hashes = {path.name: file_hash(path) for path in sorted(folder.iterdir())}
        record = CheckpointRecord(owner=self.owner, state=state, files=hashes)
        write_record(folder / _STATE, record)


def write_weights(path: Path, tensors: dict[str, Tensor]) -> str:
    """
    Write a safetensors file and return its SHA-256.

    :param path: the file
    :param tensors: the weights
    """
    with replacing(path) as temporary:
        try:
            save_file(_contiguous(tensors), temporary)
        except SafetensorError as error:
            raise cannot_write(path, error) from error
    return file_hash(path)


def read_weights(path: Path, sha256: str) -> dict[str, Tensor]:
    """
    Return the weights of a network, verified.

    :param path: a safetensors file
    :param sha256: the hash that was recorded for it
    :raises UserError: if it is missing, damaged, or another file
    """
    if not path.is_file():
        raise UserError(f"The weights {path} are missing; train the run again.")
    if file_hash(path) != sha256:
        raise UserError(
            f"The weights {path} are not those that run.json records: the file is damaged or was "
            "exchanged. Train the run again."
        )
    return read_tensors(path)


def read_tensors(path: Path) -> dict[str, Tensor]:
    """
    Return the tensors of a safetensors file; other files, such as pickles, are refused.

    :raises UserError: if it is not a safetensors file
    """
    try:
        return load_file(path)
    except (SafetensorError, OSError, ValueError) as error:
        raise UserError(f"{path} is not a safetensors file: {error}.") from error


def _contiguous(tensors: dict[str, Tensor]) -> dict[str, Tensor]:
    # safetensors refuses views and tensors that share memory
    return {name: tensor.detach().cpu().contiguous().clone() for name, tensor in tensors.items()}
