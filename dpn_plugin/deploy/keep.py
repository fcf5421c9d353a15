"""How the fit of a detector is kept in a bundle: as tensors if they suffice, else as its data."""

import logging
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

import numpy as np
import torch
from pydantic import JsonValue
from torch import Tensor

from dpn_plugin.data import Samples, Transform
from dpn_plugin.deploy.scorer import BundledDetector, Outputs
from dpn_plugin.deploy.state import captured_state, restore_state
from dpn_plugin.detectors import GaussianKL, fit, fits_on
from dpn_plugin.errors import UserError
from dpn_plugin.runs import Predictor

_log = logging.getLogger(__name__)

#: inputs in a batch when a detector is fitted again
_BATCH = 256


@dataclass(frozen=True)
class Kept:
    """
    The fit of a detector.

    :param kind: as in :class:`~dpn_plugin.deploy.record.DetectorRecord`
    :param state: attributes as JSON
    :param tensors: that it refers to
    :param reads: which arrays of the training data the detector is fitted to
    """

    kind: Literal["nothing", "state", "fitting data", "members"]
    state: dict[str, JsonValue] = field(default_factory=dict)
    tensors: dict[str, Tensor] = field(default_factory=dict)
    reads: str = ""


class FittedDetector:
    """
    A detector that is created, fitted and then kept.

    :param name: of the detector
    :param predictor: the networks
    :param options: arguments of its class
    """

    def __init__(self, name: str, predictor: Predictor, options: Mapping[str, Any]) -> None:
        self.predictor, self.options = predictor, dict(options)
        self.bundled = BundledDetector(name, predictor, options)
        detector = self.bundled.detector
        self.before = {} if detector is None else dict(vars(detector))

    @property
    def fitted_to(self) -> str | None:
        """The part of the run's data that it is fitted to: ``train``, ``held_out`` or none."""
        detector = self.bundled.detector
        if detector is None or not detector.requires_fit:
            return None
        # training samples are all classified correctly; it needs some that are not, and OOD
        return "held_out" if isinstance(detector, GaussianKL) else "train"

    def keep(self, outputs: Outputs, x: Tensor) -> Kept:
        """
        Return how the fit is kept.

        State is kept only if a new detector with this state gives the same scores: hosts also keep
        what they have learned in objects that cannot be seen from outside.

        :param outputs: of the networks for a few samples
        :param x: the inputs of the networks for these samples
        """
        if self.fitted_to is None:
            return Kept("nothing")
        try:
            state, tensors = captured_state(self.bundled.name, self.before, self.bundled.detector)
            copy = BundledDetector(self.bundled.name, self.predictor, self.options)
            restore_state(copy.detector, state, tensors)
            copy.one_by_one = self.bundled.one_by_one
            if torch.equal(copy.scores(outputs, x), self.bundled.scores(outputs, x)):
                return Kept("state", state, tensors)
        except Exception as error:  # hosts raise what they like if they are not fitted
            _log.debug("%s cannot be kept as tensors: %s", self.bundled.name, error)
        return Kept("fitting data", reads=fits_on(self.bundled.detector))


def fitting_tensors(
    kinds: set[str], arrays: Mapping[str, np.ndarray], samples: Samples
) -> dict[str, Tensor]:
    """
    Return the training data that detectors are fitted to again, by kind.

    :param kinds: of ``logits``, ``features`` and ``inputs``
    :param arrays: outputs of the networks for ``samples``
    :param samples: the training data
    """
    if not kinds:
        return {}
    found = {kind: torch.from_numpy(np.array(arrays[kind])) for kind in kinds - {"inputs"}}
    if "inputs" in kinds:
        found["inputs"] = samples.all_rows()
    return {**found, "labels": samples.labels}


def fit_again(
    bundled: BundledDetector, data: Mapping[str, Tensor], transform: Transform, where: torch.device
) -> None:
    """
    Fit a detector to the data that was kept.

    :param bundled: created with the same options
    :param data: what :func:`fitting_tensors` returned
    :param transform: what brings inputs to the networks
    :param where: the device of the networks
    :raises UserError: if the data is not what the detector is fitted to
    """
    kind = fits_on(bundled.detector)
    if not {kind, "labels"} <= data.keys() or len(data[kind]) != len(data["labels"]):
        raise UserError(f"The bundle lacks the {kind} that {bundled.name!r} is fitted to.")
    arrays = {name: tensor.numpy() for name, tensor in data.items() if name != "inputs"}

    def batches() -> Iterator[tuple[Tensor, Tensor]]:
        pairs = zip(data["inputs"].split(_BATCH), data["labels"].split(_BATCH), strict=True)
        for x, y in pairs:
            yield transform(x.to(where)), y

    fit(bundled.detector, arrays, batches)
