"""
Which argument of a detector is which part of a backbone.

The names of parameters decide, by pytorch-ood's conventions: ``model`` returns logits, ``encoder``
features, ``backbone`` feature maps. The tables below are for classes that these do not cover.
"""

from contextlib import suppress
from typing import Any

import torch
from pytorch_ood.api import FeatureMapsDetector
from torch import nn

from dpn_plugin.backbones import HOST_ERRORS, Backbone, is_timm_model
from dpn_plugin.detectors.wiring.feature_maps import NotApplicable
from dpn_plugin.detectors.wiring.parts import PARTS
from dpn_plugin.detectors.wiring.preserved_state import preserved_state
from dpn_plugin.errors import UserTypeError
from dpn_plugin.plugins import allowed_options, takes

#: parameter: part, for all classes
_BY_NAME = {
    "model": "model",
    "encoder": "encoder",
    "head": "head",
    "w": "weight",
    "weight": "weight",
    "b": "bias",
    "bias": "bias",
    "num_classes": "number of classes",
    "n_classes": "number of classes",
    "num_features": "number of features",
    "layers": "inner layers",
    "feature_layers": "stages",
    "norm_std": "std",
    "norm_mean": "mean",
}

_WITH_DROPOUT = "model with dropout"

#: exceptions for classes that work on feature maps
_ON_MAPS = {"backbone": "maps", "head": "maps head"}
_ON_POOLED = {"backbone": "pooled", "head": "pooled head"}

#: class of pytorch-ood: parameter: part
_BY_CLASS: dict[str, dict[str, str]] = {
    # their papers modify the pooled features of the penultimate layer
    "ASH": _ON_POOLED,
    "ReAct": _ON_POOLED,
    "SCALE": _ON_POOLED,
    "VRA": _ON_POOLED,
    "RankFeat": {"backbone": "maps of several positions", "head": "maps head"},
    # these read head.weight
    "fDBD": {"head": "linear head"},
    "NCI": {"head": "linear head"},
    # paper: the weights of the last layer; OpenOOD: the last layer; others cost memory per sample
    "GradNorm": {"param_filter": "head weight"},
    "GradUncertainty": {"param_filter": "head parameters"},
    "Gram": {"head": "maps head"},
    "MCD": {"model": _WITH_DROPOUT},
    "MCM": {"text_embeddings": "text embeddings"},
    "MultiMahalanobis": {"model": "stages"},
    "NACUE": {"feature_reduce": "spatial mean"},
    "ViM": {"d": "principal dimensions"},
    # equal weights give the energy score; other weights come from the regularizer of VOS
    "WeightedEBO": {"weights": "ones"},
}

#: class of pytorch-ood: values from its paper for arguments without a default
_VALUES: dict[str, dict[str, Any]] = {"DICE": {"p": 0.9}}


def filled_arguments(
    what: str, factory: Any, model: nn.Module, options: dict[str, Any]
) -> dict[str, Any]:
    """
    Return ``options`` and the arguments that a model can add to them.

    :param what: the detector in error messages, e.g. ``"Detector 'gram'"``
    :param factory: its class, or a function that returns it
    :param model: a backbone, a timm model, or any other module that returns logits
    :param options: arguments that are given already
    :raises NotApplicable: if the model lacks what the detector needs
    :raises UserTypeError: if the detector needs more than logits, and the model returns only these
    """
    missing = {name: part for name, part in _parts(factory).items() if name not in options}
    backbone = _as_backbone(model)
    if backbone is None:
        filled = _from_logits(what, factory, model, missing)
    else:
        filled = {name: _part(factory, part, backbone) for name, part in missing.items()}
    return {**_of_host(factory, _VALUES), **filled, **options}


def factory_name(factory: Any) -> str:
    """Return the name of a class or function."""
    # a functools.partial object has no name
    return getattr(factory, "__name__", type(factory).__name__)


def uses_dropout(factory: Any) -> bool:
    """Return whether a detector activates the dropout of its model, so that any mode is right."""
    return _WITH_DROPOUT in _parts(factory).values()


def _parts(factory: Any) -> dict[str, str]:
    """Return the arguments that a backbone can fill, and the parts that fill them."""
    on_maps = isinstance(factory, type) and issubclass(factory, FeatureMapsDetector)
    names = _BY_NAME | (_ON_MAPS if on_maps else {}) | _of_host(factory, _BY_CLASS)
    return {name: part for name, part in names.items() if takes(factory, name)}


def _of_host(factory: Any, by_class: dict[str, dict[str, Any]]) -> dict[str, Any]:
    """Return the row of the class, or of the class of pytorch-ood from which it is derived."""
    classes = getattr(factory, "__mro__", ())
    theirs = [each.__name__ for each in classes if each.__module__.startswith("pytorch_ood.")]
    return next((by_class[name] for name in theirs if name in by_class), {})


def _as_backbone(model: nn.Module) -> Backbone | None:
    """Return a backbone itself, a timm model wrapped, and ``None`` for any other module."""
    if isinstance(model, Backbone):
        return model
    if not is_timm_model(model):
        return None
    config: Any = model.pretrained_cfg
    channels = next((each.shape[1] for each in model.parameters() if each.ndim == 4), 0)
    size = config["input_size"][1:]
    shape = (channels, *size) if channels else config["input_size"][:1]
    backbone = Backbone(model, config["architecture"], "default", tuple(shape))
    _measure(backbone)
    return backbone


def _measure(backbone: Backbone) -> None:
    """Find the head of a model, unless the model takes inputs of another size than timm says."""
    device = next(backbone.parameters()).device
    with preserved_state([backbone]), suppress(*HOST_ERRORS):
        backbone.measure(torch.zeros(1, *backbone.input_size, device=device))


def _part(factory: Any, part: str, backbone: Backbone) -> Any:
    try:
        return PARTS[part](backbone)
    except NotApplicable as reason:
        raise NotApplicable(f"{factory_name(factory)} {reason}.") from None


def _from_logits(
    what: str, factory: Any, model: nn.Module, missing: dict[str, str]
) -> dict[str, Any]:
    if missing and missing.get("model", "stages") == "stages":
        raise UserTypeError(
            f"{what} takes no model that gives logits alone: {' and '.join(missing)} must be given,"
            f" or come from a timm model. {allowed_options(factory)}"
        )
    return {"model": model} if missing else {}
