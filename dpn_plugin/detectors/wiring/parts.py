"""
The parts of a backbone that detectors take as arguments, each a function of the backbone.

If the backbone lacks a part, :class:`NotApplicable` is raised. Messages start with the verb, so
that the name of the detector can be put in front: "Gram" + " needs feature maps, ...".
"""

from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor, nn

from dpn_plugin.backbones import Backbone, head_modules, mc_dropout
from dpn_plugin.detectors.wiring.feature_maps import (
    NotApplicable,
    final_maps,
    inner_layers,
    spatial_mean,
    stages,
)
from dpn_plugin.errors import UserError


def as_maps(features: Tensor) -> Tensor:
    """Return features B x D as feature maps B x D x 1 x 1."""
    return features[:, :, None, None]


class Pooled(nn.Module):
    """
    The encoder as a module that returns feature maps with one position.

    The papers on ReAct, ASH, SCALE and VRA modify the pooled features of the penultimate layer.
    With this module these detectors work on every backbone, and on stored features.

    :param backbone: the backbone that computes the features
    """

    def __init__(self, backbone: Backbone) -> None:
        super().__init__()
        self.source = backbone

    def forward(self, x: Tensor) -> Tensor:
        """Return the features as maps B x D x 1 x 1."""
        return as_maps(self.source.encoder(x))


class _PooledHead(nn.Module):
    def __init__(self, backbone: Backbone) -> None:
        super().__init__()
        self.source = backbone

    def forward(self, maps: Tensor) -> Tensor:
        return self.source.head(maps.flatten(1))


def _linear(backbone: Backbone) -> nn.Linear:
    """Return the head as one linear layer that shares its weights."""
    weight, bias = _weight(backbone), backbone.bias
    classifier = head_modules(backbone.model)[0]
    if isinstance(classifier, nn.Linear):
        return classifier
    layer = nn.utils.skip_init(nn.Linear, weight.shape[1], weight.shape[0], bias=bias is not None)
    layer.weight, layer.bias = nn.Parameter(weight), bias
    return layer


def _splitting(backbone: Backbone) -> Backbone:
    """Return a backbone whose head turns features into logits."""
    if not backbone.splits:
        raise NotApplicable(
            f"needs a head that turns features into logits, and the logits of {backbone.name} do "
            "not follow from its features through one head"
        )
    return backbone


def _weight(backbone: Backbone) -> Tensor:
    if not _splitting(backbone).is_linear:
        raise NotApplicable(
            f"needs a linear head, and that of {backbone.name} is {backbone.head_description}"
        )
    return backbone.weight.detach()


def _bias(backbone: Backbone) -> Tensor:
    weight = _weight(backbone)
    return weight.new_zeros(len(weight)) if backbone.bias is None else backbone.bias.detach()


def _head_parameters(backbone: Backbone) -> Callable[[str], bool]:
    """Return which parameters belong to the head; gradients of others cost memory per sample."""
    heads = head_modules(backbone.model)
    own = {id(each) for head in heads for each in head.parameters()}
    names = {name for name, each in backbone.named_parameters() if id(each) in own}
    return names.__contains__


def _head_weight(backbone: Backbone) -> Callable[[str], bool]:
    weight = _weight(backbone)
    shared = weight.data_ptr()
    names = {name for name, each in backbone.named_parameters() if each.data_ptr() == shared}
    return names.__contains__


def _with_dropout(backbone: Backbone) -> Backbone:
    try:
        with mc_dropout(backbone):
            return backbone
    except UserError:
        raise NotApplicable(
            f"needs dropout, and {backbone.name} has none unless it is built with drop_rate, "
            "e.g. with --set drop_rate=0.5"
        ) from None


def _maps_of_several_positions(backbone: Backbone) -> nn.Module:
    # RankFeat subtracts a rank-1 matrix from channels x positions: with one position, zero remains
    source = final_maps(backbone)
    height, width = source.size
    if height * width == 1:
        raise NotApplicable(
            f"needs feature maps of several positions, and {backbone.name} has one at "
            f"{'x'.join(map(str, backbone.input_size[1:]))} pixels"
        )
    return source


def _principal_dimensions(backbone: Backbone) -> int:
    # as in the paper on ViM: 1000 of 2048 features, 512 of 768, else half of them
    width = backbone.num_features
    return 1000 if width >= 2048 else 512 if width >= 768 else width // 2


def _text_embeddings(backbone: Backbone) -> Tensor:
    raise NotApplicable(
        f"needs text_embeddings of the classes from a vision-language model, and {backbone.name}"
        " has no text encoder"
    )


#: name of a part: function that returns it for a backbone
PARTS: dict[str, Callable[[Backbone], Any]] = {
    "bias": _bias,
    "model with dropout": _with_dropout,
    "encoder": lambda backbone: backbone.encoder,
    "head": lambda backbone: _splitting(backbone).head,
    "head parameters": _head_parameters,
    "head weight": _head_weight,
    "inner layers": inner_layers,
    "linear head": _linear,
    "maps": final_maps,
    "maps head": lambda backbone: final_maps(backbone).head,
    "maps of several positions": _maps_of_several_positions,
    "model": lambda backbone: backbone,
    "number of classes": lambda backbone: backbone.num_classes,
    "number of features": lambda backbone: backbone.num_features,
    "ones": lambda backbone: torch.ones(backbone.num_classes),
    "pooled": Pooled,
    "pooled head": lambda backbone: _PooledHead(_splitting(backbone)),
    "principal dimensions": _principal_dimensions,
    "spatial mean": spatial_mean,
    "stages": stages,
    "std": lambda backbone: list(backbone.std),
    "mean": lambda backbone: list(backbone.mean),
    "text embeddings": _text_embeddings,
    "weight": _weight,
}
