"""What a detector reads: stored logits or features, or inputs."""

from collections.abc import Mapping

import numpy as np
from pytorch_ood import api
from pytorch_ood.api import Detector, FeatureMapsDetector, GradientDetector

from dpn_plugin.detectors.wiring import NotApplicable, Pooled

#: what can be stored, and the method of a detector that reads it
_STORED = {"logits": "predict_logits", "features": "predict_features"}


def reads(detector: Detector) -> str:
    """
    Return what a detector scores: ``"logits"``, ``"features"`` or ``"inputs"``.

    Logits and features can be stored. For inputs the model has to run again, to compute feature
    maps, several layers, gradients or dropout.
    """
    if isinstance(detector, GradientDetector):
        return "inputs"
    if isinstance(detector, FeatureMapsDetector):
        return "features" if isinstance(getattr(detector, "backbone", None), Pooled) else "inputs"
    return next((kind for kind, each in _STORED.items() if _implements(detector, each)), "inputs")


def fits_on(detector: Detector) -> str:
    """Return what a detector is fitted to; not always what it :func:`reads`."""
    # MahalanobisODIN is fitted to features and scores inputs
    for kind in _STORED:
        if _implements(detector, f"fit_{kind}"):
            return kind
    return reads(detector) if isinstance(detector, FeatureMapsDetector) else "inputs"


def stored_array(detector: Detector, outputs: Mapping[str, np.ndarray], kind: str) -> np.ndarray:
    """
    Return the stored array that a detector needs.

    :param detector: the detector, for the error message
    :param outputs: arrays by name
    :param kind: ``"logits"`` or ``"features"``
    :raises NotApplicable: if it was not stored, as for ensembles
    """
    if kind not in outputs:
        raise NotApplicable(
            f"{type(detector).__name__} needs {kind}, and this model gives {' and '.join(outputs)}."
        )
    return outputs[kind]


def _implements(detector: Detector, method: str) -> bool:
    """Return whether a class derived from pytorch-ood's base classes defines the method."""
    definitions = (each for each in type(detector).__mro__ if method in vars(each))
    return getattr(next(definitions, None), "__module__", api.__name__) != api.__name__
