"""Files with the weights of a network: safetensors, or pickles of tensors and nothing else."""

import hashlib
import pickle  # nosec B403 # for the name of its error; torch reads tensors only
from collections.abc import Mapping
from pathlib import Path
from typing import Any, NamedTuple

import torch
from pydantic import BaseModel, ConfigDict
from safetensors import SafetensorError
from safetensors.torch import load_file
from torch import Tensor

from dpn_plugin._files import file_hash
from dpn_plugin.errors import UserError

#: where checkpoints of timm, torchvision, Lightning and others keep the weights, in this order
_CONTAINERS = (
    "state_dict_ema",
    "model_ema",
    "state_dict",
    "model_state_dict",
    "model_state",
    "model",
    "net",
    "network",
    "module",
    "weights",
    "params",
)


class WeightsFile(BaseModel):
    """
    A file with weights, and the hash of its content.

    :param path: where it is
    :param sha256: of its content; two files with the same are the same weights
    """

    model_config = ConfigDict(extra="forbid", frozen=True)

    path: str
    sha256: str

    @classmethod
    def at(cls, path: str | Path) -> "WeightsFile":
        """
        Return the record of a file.

        :raises UserError: if there is none
        """
        path = Path(path)
        if not path.is_file():
            raise UserError(
                f"There is no weights file {path}. It must be a .safetensors or .pth file."
            )
        try:
            return cls(path=str(path), sha256=file_hash(path))
        except OSError as error:
            raise UserError(f"The weights {path} cannot be read: {error.strerror}.") from error


class StateDict(NamedTuple):
    """
    The tensors of a file.

    :param tensors: by name
    :param ordered: whether they are in the order in which the network defines them
    """

    tensors: dict[str, Tensor]
    ordered: bool


def tensors_hash(tensors: Mapping[str, Tensor]) -> str:
    """Return a hash of named tensors, e.g. a state dict: names, types, shapes and values."""
    digest = hashlib.sha256()
    for name, each in sorted(tensors.items()):
        tensor = each.detach().cpu().contiguous()
        digest.update(f"{name} {tensor.dtype} {tuple(tensor.shape)}\n".encode())
        digest.update(tensor.reshape(-1).view(torch.uint8).numpy().data)
    return digest.hexdigest()


def read_state_dict(file: WeightsFile) -> StateDict:
    """
    Return the weights of a file, verified; containers such as ``state_dict`` are opened.

    :param file: what :meth:`WeightsFile.at` returned
    :raises UserError: if the file is missing, was changed, or holds anything but tensors and plain
        values; nothing in it is executed
    """
    path = Path(file.path)
    if WeightsFile.at(path).sha256 != file.sha256:
        raise UserError(f"The weights {path} have changed since the run was planned.")
    is_safetensors = _is_safetensors(path)
    tensors = _read_safetensors(path) if is_safetensors else _read_pickle(path)
    broken = [name for name, each in tensors.items() if not torch.isfinite(each).all()]
    if broken:
        raise UserError(f"{path} holds values that are not finite, e.g. in {broken[0]!r}.")
    # safetensors files are sorted by type and name
    return StateDict(tensors, ordered=not is_safetensors)


def _is_safetensors(path: Path) -> bool:
    """Return whether a file starts with the length of a JSON header, whatever its name is."""
    with path.open("rb") as file:
        start = file.read(9)
    length = int.from_bytes(start[:8], "little")
    return start[8:] == b"{" and length < path.stat().st_size


def _read_safetensors(path: Path) -> dict[str, Tensor]:
    try:
        return load_file(path)
    except (SafetensorError, OSError, ValueError) as error:
        raise UserError(f"{path} is not a safetensors file: {error}.") from error


def _read_pickle(path: Path) -> dict[str, Tensor]:
    try:
        found = torch.load(path, map_location="cpu", weights_only=True)
    except pickle.UnpicklingError as error:
        raise UserError(
            f"{path} holds Python objects or code besides tensors, which are not loaded. Save the "
            "weights alone: torch.save(model.state_dict(), FILE), or as safetensors."
        ) from error
    except Exception as error:  # torch's readers of damaged files raise errors of many types
        raise UserError(
            f"{path} is neither a safetensors file nor one that torch.save wrote."
        ) from error
    tensors = _open_containers(found)
    if not tensors:
        raise UserError(f"{path} holds no state dict: no table of tensors by name.")
    return tensors


def _open_containers(found: Any) -> dict[str, Tensor]:
    if not isinstance(found, Mapping):
        return {}
    for name in _CONTAINERS:
        inner = _open_containers(found.get(name))
        if inner:
            return inner
    return {
        str(name): each
        for name, each in found.items()
        if isinstance(each, Tensor) and not each.is_sparse
    }
