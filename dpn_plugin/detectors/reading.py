"""What a detector scores from."""

from collections.abc import Iterator
from typing import Any

import torch
from pytorch_ood.api import (
    Detector,
    FeatureMapsDetector,
    FeaturesDetector,
    GradientDetector,
    LogitsDetector,
)
from torch import nn

from dpn_plugin.detectors.parts import Pooled

__all__ = ["device_of", "models_of", "reads"]

#: what is read: the base class that says so, and the method that must then be there
_BASES = {
    "logits": (LogitsDetector, "predict_logits"),
    "features": (FeaturesDetector, "predict_features"),
}


def reads(detector: Detector) -> str:
    """
    :param detector: any
    :return: ``"logits"`` or ``"features"``, which can be stored; or ``"inputs"``, where the model
        has to run again: for feature maps, several layers, gradients or dropout
    """
    if isinstance(detector, GradientDetector):
        return "inputs"
    if isinstance(detector, FeatureMapsDetector):
        return "features" if isinstance(getattr(detector, "backbone", None), Pooled) else "inputs"
    for kind, (base, method) in _BASES.items():
        if isinstance(detector, base) and getattr(type(detector), method) != getattr(base, method):
            return kind
    return "inputs"


def models_of(detector: Detector) -> list[nn.Module]:
    """:return: the modules that the detector holds, also as methods, in lists and in detectors"""
    return list(dict.fromkeys(_modules(vars(detector))))


def device_of(detector: Detector) -> torch.device:
    """:return: where the detector's model is"""
    parameters = (each for model in models_of(detector) for each in model.parameters())
    return getattr(next(parameters, None), "device", torch.device("cpu"))


def _modules(value: Any) -> Iterator[nn.Module]:
    if isinstance(value, nn.Module):
        yield value
    elif isinstance(getattr(value, "__self__", None), nn.Module):
        yield value.__self__
    elif isinstance(value, Detector):
        yield from _modules(vars(value))
    elif isinstance(value, dict | list | tuple):
        for each in value.values() if isinstance(value, dict) else value:
            yield from _modules(each)
