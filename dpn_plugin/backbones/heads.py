"""The head of a timm model: what computes logits from its features."""

from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn import functional as F


def head_modules(model: Any) -> list[nn.Module]:
    """
    Return the classifiers of a timm model; a model that averages several has more than one.

    :param model: a timm model
    """
    classifier = model.get_classifier()
    found = [classifier] if isinstance(classifier, nn.Module) else [*classifier]
    if isinstance(classifier, nn.ModuleList):
        found = [*classifier]
    return [_without_pooling(each) for each in found]


def head_names(model: Any) -> set[str]:
    """
    Return the names of the head's tensors in the state dict of a timm model.

    :param model: a timm model
    """
    heads = head_modules(model)
    own = {id(each) for head in heads for each in (*head.parameters(), *head.buffers())}
    tensors = (*model.named_parameters(), *model.named_buffers())
    return {name for name, each in tensors if id(each) in own}


def is_linear(heads: Sequence[nn.Module]) -> bool:
    """Return whether a head is one linear layer, or a convolution of one pixel."""
    if len(heads) != 1:
        return False
    head = heads[0]
    return isinstance(head, nn.Linear) or (
        isinstance(head, nn.Conv2d) and head.kernel_size == (1, 1)
    )


def describe(heads: Sequence[nn.Module]) -> str:
    """Return what a head is, e.g. ``"a NormMlp"`` or ``"the average of 2"``."""
    if len(heads) == 1:
        return f"a {type(heads[0]).__name__}"
    return f"the average of {len(heads)}"


def apply_heads(heads: Sequence[nn.Module], features: Tensor) -> Tensor:
    """
    Return logits B x K, averaged over the heads.

    :param heads: what :func:`head_modules` returns
    :param features: B x D
    """
    if len(heads) == 1:
        return _applied(heads[0], features)
    return torch.stack([_applied(each, features) for each in heads]).mean(dim=0)


def _applied(head: Any, features: Tensor) -> Tensor:
    if isinstance(head, nn.Conv2d):
        return F.linear(features, head.weight.flatten(1), head.bias)
    return head(features)


def _without_pooling(classifier: Any) -> nn.Module:
    # Sequencer and SAM return timm's ClassifierHead, which pools before its linear layer
    pools = hasattr(classifier, "global_pool") and isinstance(
        getattr(classifier, "fc", None), nn.Module
    )
    return classifier.fc if pools else classifier
