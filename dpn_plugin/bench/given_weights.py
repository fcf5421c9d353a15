"""The weights that the networks of a benchmark start from, if any are given."""

from functools import cache
from pathlib import Path
from typing import Any

from dpn_plugin.backbones import WeightsFile
from dpn_plugin.bench.suite import Suite, TrainTable
from dpn_plugin.errors import UserError


def choose_weights(suite: Suite, base: Path, pretrained: bool, weights: Path | None) -> Suite:
    """
    Return the suite with the weights that are asked for, or with its own.

    :param suite: the suite
    :param base: where the relative path of its own weights starts
    :param pretrained: use the weights that timm publishes
    :param weights: use the weights of this file
    :raises UserError: if both are asked for
    """
    if pretrained and weights is not None:
        raise UserError("--pretrained and --weights cannot be given together.")
    table = suite.train
    if table.pretrained and table.weights is not None:
        raise UserError("[train]: pretrained and weights cannot be given together.")
    chosen: dict[str, Any] = {}
    if pretrained:
        chosen = {"pretrained": True, "weights": None}
    elif weights is not None:
        chosen = {"pretrained": False, "weights": str(weights.resolve())}
    elif table.weights is not None:
        chosen = {"weights": str((base / table.weights).resolve())}
    return suite.model_copy(update={"train": table.model_copy(update=chosen)})


def given_weights(table: TrainTable) -> dict[str, Any]:
    """
    Return the fields of a ``TrainConfig`` that say from which weights training starts.

    The size of the network's input is the one that ``[train]`` asks for with ``image_size``;
    without it, the network keeps its own, whatever the suite's ``input_size`` is.

    :param table: ``[train]``, after :func:`choose_weights`
    :raises UserError: if there is no such file
    """
    if not table.pretrained and table.weights is None:
        return {}
    return {
        "pretrained": table.pretrained,
        "weights": None if table.weights is None else _weights_file(table.weights),
        "network_size": (table.model_extra or {}).get("image_size"),
    }


def _weights_file(path: str) -> WeightsFile:
    try:
        state = Path(path).stat()
    except OSError:
        return WeightsFile.at(path)  # which says what is wrong
    return _hashed(path, state.st_mtime_ns, state.st_size)


@cache
def _hashed(path: str, changed: int, size: int) -> WeightsFile:
    """Return the record of a file; it is hashed once, however many runs start from it."""
    return WeightsFile.at(path)
