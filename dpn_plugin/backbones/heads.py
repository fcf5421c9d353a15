"""The head of a timm model: what computes logits from its features."""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn import functional as F
from torch.nn.modules.batchnorm import _BatchNorm


def head_modules(model: Any) -> list[nn.Module]:
    """
    Return the classifiers of a timm model; a model that averages several has more than one.

    :param model: a timm model
    """
    classifier = model.get_classifier()
    found = [classifier] if isinstance(classifier, nn.Module) else [*classifier]
    if isinstance(classifier, nn.ModuleList):
        found = [*classifier]
    return [_whole_head(model, each) for each in found]


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


@contextmanager
def perturbed(model: Any) -> Iterator[None]:
    """
    Within the block, change the head and all batch norms of a model; afterwards they are restored.

    An untrained batch norm is close to the identity and some heads start from zeros, so that a
    computation without them would seem to be right.

    :param model: a timm model
    """
    norms = [each for each in model.modules() if isinstance(each, _BatchNorm)]
    buffers = [each for norm in norms for each in (norm.running_mean, norm.running_var)]
    weights = [each for head in head_modules(model) for each in head.parameters()]
    changed = [each for each in (*buffers, *weights) if each is not None]
    before = [each.detach().clone() for each in changed]
    try:
        for each in changed:
            values = torch.linspace(0.1, 0.6, each.numel(), device=each.device)
            each.data.add_(values.view_as(each).to(each.dtype))
        yield
    finally:
        for each, original in zip(changed, before, strict=True):
            each.data.copy_(original)


def _whole_head(model: Any, classifier: Any) -> nn.Module:
    head = getattr(model, "head", None)
    # EfficientViT (MSRA) and SHViT return the linear layer, which follows a batch norm
    parts = [*head.children()] if isinstance(head, nn.Module) else []
    if isinstance(head, nn.Module) and hasattr(head, "bn") and any(p is classifier for p in parts):
        return head
    # Sequencer and SAM return timm's ClassifierHead, which pools before its linear layer
    pools = hasattr(classifier, "global_pool") and isinstance(
        getattr(classifier, "fc", None), nn.Module
    )
    return classifier.fc if pools else classifier
