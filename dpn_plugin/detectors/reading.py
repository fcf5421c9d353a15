"""What a detector scores from."""

from collections.abc import Iterator
from typing import Any

import torch
from pytorch_ood import api
from pytorch_ood.api import Detector, FeatureMapsDetector, GradientDetector
from torch import nn

from dpn_plugin.detectors.parts import Pooled

__all__ = ["device_of", "implements", "models_of", "reads"]

#: what can be stored, and the method of a detector that reads it
_STORED = {"logits": "predict_logits", "features": "predict_features"}


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
    return next((kind for kind, each in _STORED.items() if implements(detector, each)), "inputs")


def implements(detector: Detector, method: str) -> bool:
    """:return: whether a class below pytorch-ood's own base classes defines the method"""
    homes = (each for each in type(detector).__mro__ if method in vars(each))
    return getattr(next(homes, None), "__module__", api.__name__) != api.__name__


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
