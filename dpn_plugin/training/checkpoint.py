"""Checkpoints: folders that appear whole, are checked when read, and hold no pickle but tensors."""

import os
import shutil
import tempfile
from pathlib import Path
from typing import Any

import torch
from safetensors import SafetensorError
from safetensors.torch import load_file, save_file
from torch import Tensor

from dpn_plugin.errors import UserError
from dpn_plugin.files import cannot_write, file_hash, replacing, sync
from dpn_plugin.sealed import sealed, unsealed

__all__ = ["Checkpoints", "read_tensors", "read_weights", "write_weights"]

_STATE = "state.json"
_OPTIMIZER = "optimizer.pt"


class Checkpoints:
    """
    The checkpoints of one network. The newest that is whole counts; one older is kept, so that a
    damaged file costs no more than the time between two of them.

    :param folder: where they are
    :param owner: a hash of all that decides the training; checkpoints of another owner, which a
        hand or an older plan has left here, do not count
    """

    def __init__(self, folder: Path, owner: str) -> None:
        self.folder, self.owner = folder, owner

    def save(
        self,
        state: dict[str, Any],
        weights: dict[str, dict[str, Tensor]],
        optimizer: dict[str, Any],
    ) -> None:
        """
        :param state: JSON; ``state["step"]`` orders the checkpoints
        :param weights: named sets of tensors
        :param optimizer: its ``state_dict``
        :raises UserError: if it cannot be written; older ones are untouched
        """
        final = self.folder / f"step-{state['step']:09d}"
        try:
            self.folder.mkdir(parents=True, exist_ok=True)
            with tempfile.TemporaryDirectory(dir=self.folder, prefix=".writing-") as name:
                self._write(Path(name), state, weights, optimizer)
                if final.exists():
                    shutil.rmtree(final)
                os.rename(name, final)
                Path(name).mkdir()  # for TemporaryDirectory to remove
            sync(self.folder)
        except (OSError, RuntimeError, SafetensorError) as error:  # a full disk is any of them
            raise cannot_write(final, error) from error
        self._drop_old()

    def newest(self) -> Path | None:
        """:return: the newest checkpoint that is whole, undamaged and ours"""
        return next((path for path in self._all() if self._is_good(path)), None)

    def load(self, path: Path) -> tuple[dict[str, Any], dict[str, dict[str, Tensor]], Any]:
        """
        :param path: what :meth:`newest` gave
        :return: state, sets of weights, state of the optimizer
        """
        state = _read_state(path)["state"]
        weights = {file.stem: load_file(file) for file in sorted(path.glob("*.safetensors"))}
        optimizer = torch.load(path / _OPTIMIZER, map_location="cpu", weights_only=True)
        return state, weights, optimizer

    def remove(self) -> None:
        """Remove all of them; the network is trained."""
        shutil.rmtree(self.folder, ignore_errors=True)

    def _all(self) -> list[Path]:
        return sorted(self.folder.glob("step-*"), reverse=True)

    def _drop_old(self) -> None:
        for path in [*self._all()[2:], *self.folder.glob(".writing-*")]:
            shutil.rmtree(path, ignore_errors=True)

    def _is_good(self, path: Path) -> bool:
        try:
            known = _read_state(path)
            whole = all(file_hash(path / name) == found for name, found in known["files"].items())
            return whole and known["owner"] == self.owner
        except (OSError, ValueError, KeyError):
            return False

    def _write(self, folder: Path, state: dict, weights: dict, optimizer: dict) -> None:
        for name, tensors in weights.items():
            save_file(_plain(tensors), folder / f"{name}.safetensors")
        with (folder / _OPTIMIZER).open("wb") as file:  # not by name: the system's words are kept
            torch.save(optimizer, file)
        hashes = {path.name: file_hash(path) for path in sorted(folder.iterdir())}
        known = {"owner": self.owner, "state": state, "files": hashes}
        (folder / _STATE).write_text(sealed(known), "utf-8")
        for path in folder.iterdir():
            sync(path)


def write_weights(path: Path, tensors: dict[str, Tensor]) -> str:
    """
    :param path: a safetensors file
    :param tensors: the weights
    :return: SHA-256 of the file
    """
    with replacing(path) as temporary:
        try:
            save_file(_plain(tensors), temporary)
        except SafetensorError as error:
            raise cannot_write(path, error) from error
    return file_hash(path)


def read_weights(path: Path, sha256: str) -> dict[str, Tensor]:
    """
    :param path: a safetensors file
    :param sha256: the hash that was recorded for it
    :raises UserError: if it is missing, damaged, or another one
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
    :param path: a safetensors file; any other, a pickle among them, is not read
    :raises UserError: if it is of another kind
    """
    try:
        return load_file(path)
    except (SafetensorError, OSError, ValueError) as error:
        raise UserError(f"{path} is not a safetensors file: {error}.") from error


def _plain(tensors: dict[str, Tensor]) -> dict[str, Tensor]:
    # safetensors refuses tensors that share memory, and views
    return {name: tensor.detach().cpu().contiguous().clone() for name, tensor in tensors.items()}


def _read_state(path: Path) -> dict[str, Any]:
    return unsealed((path / _STATE).read_text("utf-8"))
