"""
Which argument of a detector is which part of a backbone.

Names of parameters tell: pytorch-ood's conventions, ``model`` for logits, ``encoder`` for features,
``backbone`` for feature maps. What they leave open stands here, class by class, as data.
"""

from typing import Any

from pytorch_ood.api import FeatureMapsDetector

from dpn_plugin.plugins.options import takes

__all__ = ["part_names", "values"]

#: parameter: part, for every class that has no line of its own
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

#: how a class that works on feature maps differs
_ON_MAPS = {"backbone": "maps", "head": "maps head"}
_ON_POOLED = {"backbone": "pooled", "head": "pooled head"}

#: class of the host: parameter: part
_BY_CLASS: dict[str, dict[str, str]] = {
    # their papers shape the pooled features of the penultimate layer
    "ASH": _ON_POOLED,
    "ReAct": _ON_POOLED,
    "SCALE": _ON_POOLED,
    "VRA": _ON_POOLED,
    "RankFeat": {"backbone": "maps of several positions", "head": "maps head"},
    # these read head.weight
    "fDBD": {"head": "linear head"},
    "NCI": {"head": "linear head"},
    # the paper: weights of the last layer; OpenOOD: the last layer, others cost memory per sample
    "GradNorm": {"param_filter": "head weight"},
    "GradUncertainty": {"param_filter": "head parameters"},
    "Gram": {"head": "maps head"},
    "MCD": {"model": "dropping model"},
    "MCM": {"text_embeddings": "text embeddings"},
    "MultiMahalanobis": {"model": "stages"},
    "NACUE": {"feature_reduce": "spatial mean"},
    "ViM": {"d": "principal dimensions"},
    # equal weights make it the energy score; weights of one's own come from VOS's regulariser
    "WeightedEBO": {"weights": "ones"},
}

#: class of the host: values from its paper for arguments that the host leaves open
_VALUES: dict[str, dict[str, Any]] = {"DICE": {"p": 0.9}}


def part_names(factory: Any) -> dict[str, str]:
    """
    :param factory: the class of a detector, or a function that makes one
    :return: the arguments that a backbone can fill, and the parts that fill them
    """
    on_maps = isinstance(factory, type) and issubclass(factory, FeatureMapsDetector)
    names = _BY_NAME | (_ON_MAPS if on_maps else {}) | _of_host(factory, _BY_CLASS)
    return {name: part for name, part in names.items() if takes(factory, name)}


def values(factory: Any) -> dict[str, Any]:
    """
    :param factory: the class of a detector, or a function that makes one
    :return: the arguments for which the detector's paper gives a value
    """
    return _of_host(factory, _VALUES)


def _of_host(factory: Any, by_class: dict[str, dict[str, Any]]) -> dict[str, Any]:
    """What is said of the class, or of the class of pytorch-ood that it derives from."""
    classes = getattr(factory, "__mro__", ())
    theirs = [each.__name__ for each in classes if each.__module__.startswith("pytorch_ood.")]
    return next((by_class[name] for name in theirs if name in by_class), {})
