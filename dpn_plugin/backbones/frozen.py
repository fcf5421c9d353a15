"""Heads on the features of a network that is not trained."""

from typing import Any

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from dpn_plugin.backbones.backbone import Backbone
from dpn_plugin.backbones.heads import head_modules, head_names
from dpn_plugin.backbones.weights import tensors_hash
from dpn_plugin.errors import UserError


class LinearHead(nn.Linear):
    """
    A linear layer with dropout before it.

    :param width: of the features
    :param num_classes: number of logits
    :param drop_rate: of dropout
    """

    def __init__(self, width: int, num_classes: int, drop_rate: float = 0.0) -> None:
        super().__init__(width, num_classes)
        self.drop_rate = drop_rate

    def forward(self, features: Tensor) -> Tensor:
        """Return logits B x K."""
        if self.drop_rate:  # at a rate of 0, torch would still copy the features
            features = F.dropout(features, self.drop_rate, self.training)
        return super().forward(features)


class HiddenHead(nn.Sequential):
    """
    One hidden layer of ReLU units, dropout and a linear layer.

    :param width: of the features
    :param hidden: width of the hidden layer
    :param num_classes: number of logits
    :param drop_rate: of dropout
    """

    def __init__(self, width: int, hidden: int, num_classes: int, drop_rate: float = 0.0) -> None:
        layers = nn.Linear(width, hidden), nn.ReLU(), nn.Dropout(drop_rate)
        super().__init__(*layers, nn.Linear(hidden, num_classes))


class HeadOnly(nn.Module):
    """
    A head as a network with timm's interface, whose inputs are features.

    :param width: of the features
    :param num_classes: number of logits
    :param hidden: width of the hidden layer; linear without it
    :param drop_rate: of dropout
    """

    def __init__(
        self, width: int, num_classes: int, hidden: int | None = None, drop_rate: float = 0.0
    ) -> None:
        super().__init__()
        self.num_classes, self.num_features = num_classes, width
        self.head_hidden_size = width
        self.pretrained_cfg = {"mean": (0.0,) * width, "std": (1.0,) * width}
        self.head: nn.Module = (
            LinearHead(width, num_classes, drop_rate)
            if hidden is None
            else HiddenHead(width, hidden, num_classes, drop_rate)
        )

    def get_classifier(self) -> nn.Module:
        """Return the head."""
        return self.head

    def forward_features(self, x: Tensor) -> Tensor:
        """Return the features themselves."""
        return x

    def forward_head(self, x: Tensor, pre_logits: bool = False) -> Tensor:
        """Return logits, or the features themselves."""
        return x if pre_logits else self.head(x)

    def forward(self, x: Tensor) -> Tensor:
        """Return logits."""
        return self.head(x)


def create_head(
    name: str, width: int, num_classes: int, hidden: int | None, drop_rate: float
) -> Backbone:
    """
    Return a head alone as a backbone, with weights from torch's random state.

    :param name: of the network that computes the features
    :param width: of the features
    :param num_classes: number of logits
    :param hidden: width of the hidden layer; linear without it
    :param drop_rate: of dropout
    """
    model = HeadOnly(width, num_classes, hidden, drop_rate)
    return Backbone(model, name, "default", (width,))


def attach_head(base: Backbone, head: Backbone) -> Backbone:
    """
    Put a trained head in the place of a network's classifier, and return the network.

    :param base: the network that computes the features
    :param head: what :func:`create_head` returned, trained
    :raises UserError: if the classifier of the network cannot be replaced
    """
    model = base.model
    old = head_modules(model)
    names = [name for name, module in model.named_modules() if len(old) == 1 and module is old[0]]
    if not names:
        raise _no_head(base.name)
    parent, _, attribute = names[0].rpartition(".")
    setattr(model.get_submodule(parent), attribute, head.model.head)
    model.num_classes = head.num_classes
    base.attach_branch(head.branch)
    base.eval()
    base.measure(torch.zeros(1, *base.input_size, device=next(base.parameters()).device))
    if not base.splits:
        raise _no_head(base.name)
    return base


def base_hash(base: Backbone) -> str:
    """Return the hash of all weights of a network but those of its classifier."""
    heads = head_names(base.model)
    state: dict[str, Any] = base.model.state_dict()
    return tensors_hash({name: each for name, each in state.items() if name not in heads})


def _no_head(name: str) -> UserError:
    return UserError(
        f"The classifier of {name!r} cannot be replaced by a head on its features; train the whole "
        "network (without --freeze)."
    )
