"""The state of a fitted detector as tensors and numbers: no pickle is needed to keep it."""

from collections.abc import Mapping
from typing import Any

from pydantic import JsonValue
from torch import Tensor, nn

from dpn_plugin.errors import UserError

#: the key of a JSON object that stands for a tensor, or for a list
_TENSOR, _LIST = "tensor", "list"


class NotTensors(Exception):
    """Raised if the state of a detector is more than tensors and numbers."""


def captured_state(
    name: str, before: Mapping[str, Any], detector: Any
) -> tuple[dict[str, JsonValue], dict[str, Tensor]]:
    """
    Return the attributes that fitting has set, as JSON, and the tensors that it refers to.

    A fit may also change objects inside a detector, which is not seen here: the caller has to
    compare scores.

    :param name: the prefix of the tensors' names
    :param before: ``vars`` of the detector before it was fitted
    :param detector: fitted
    :raises NotTensors: if an attribute is neither a tensor nor a number, nor a list of these
    """
    tensors: dict[str, Tensor] = {}
    changed = {
        key: value
        for key, value in vars(detector).items()
        if key not in before or before[key] is not value
    }
    return {
        key: _encode(value, f"{name}/{key}", tensors) for key, value in changed.items()
    }, tensors


def restore_state(
    detector: Any, state: Mapping[str, JsonValue], tensors: Mapping[str, Tensor]
) -> None:
    """
    Set the attributes that :func:`captured_state` returned.

    :param detector: created with the same options, not fitted
    :param state: attributes as JSON
    :param tensors: that it refers to
    :raises UserError: if a tensor is missing, or the state is of another form
    """
    for key, value in state.items():
        setattr(detector, key, _decode(value, tensors))


def _encode(value: Any, path: str, tensors: dict[str, Tensor]) -> JsonValue:
    if isinstance(value, Tensor) and not isinstance(value, nn.Parameter):
        tensors[path] = value.detach().cpu()
        return {_TENSOR: path}
    if isinstance(value, list):
        return {_LIST: [_encode(each, f"{path}/{i}", tensors) for i, each in enumerate(value)]}
    if value is None or isinstance(value, bool | int | float | str):
        return value
    raise NotTensors(type(value).__name__)


def _decode(value: JsonValue, tensors: Mapping[str, Tensor]) -> Any:
    if not isinstance(value, dict):
        return value
    match value:
        case {"tensor": str(path)} if path in tensors:
            return tensors[path]
        case {"list": list(items)}:
            return [_decode(each, tensors) for each in items]
    raise UserError(f"The bundle has no state of the form {value!r}.")
