"""What losses have in common that read more than logits: features, and a branch of the network."""

from abc import abstractmethod
from collections.abc import Callable
from typing import NamedTuple, TypeVar

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from dpn_plugin.losses.branches import Branch
from dpn_plugin.losses.checks import check_choice, check_integer, check_target, check_width
from dpn_plugin.losses.grouped import REDUCTIONS

_B = TypeVar("_B", bound=Branch)


class NetworkOutputs(NamedTuple):
    """
    The outputs of a network that losses read.

    :param logits: of its classifier, B x K
    :param features: that the classifier reads, B x D
    :param branch: the branch that the loss asked for
    :param head: the classifier, from features to logits
    """

    logits: Tensor
    features: Tensor
    branch: Branch | None = None
    head: Callable[[Tensor], Tensor] | None = None


class FeatureLoss(nn.Module):
    """
    A loss of the outputs of a network, not of its logits alone.

    With the reduction ``mean``, values are averaged over in-domain and over OOD samples separately,
    and the two means are added, as :class:`~dpn_plugin.losses.grouped.GroupedLoss` does.

    :param num_classes: number of classes
    :param reduction: one of ``mean``, ``sum`` or ``none``
    :cvar needs_linear_head: whether the classifier must be one linear layer
    """

    needs_linear_head = False

    def __init__(self, num_classes: int, reduction: str = "mean") -> None:
        super().__init__()
        check_choice("reduction", reduction, REDUCTIONS)
        self.num_classes = check_integer("num_classes", num_classes, least=2)
        self.reduction = reduction

    def create_branch(self, width: int) -> Branch | None:
        """
        Return the branch that the network needs, with new weights; ``None`` if it needs none.

        :param width: of the features
        """
        return None

    def prepare(self, width: int) -> None:
        """
        Create the state of the loss whose shape depends on the network; most have none.

        :param width: of the features
        """

    @abstractmethod
    def per_sample(self, outputs: NetworkOutputs, target: Tensor) -> Tensor:
        """
        Return one value per sample, B.

        :param outputs: of the network
        :param target: labels; below 0 is OOD
        """

    def forward(self, outputs: NetworkOutputs, target: Tensor) -> Tensor:
        """
        Return the loss; one value per sample if the reduction is ``none``.

        :param outputs: of the network
        :param target: labels; below 0 is OOD
        :raises UserError: if a shape or label does not fit
        """
        check_width(outputs.logits, self.num_classes)
        check_target(target, outputs.logits)
        values = self.per_sample(outputs, target.long())
        if self.reduction == "none":
            return values
        if self.reduction == "sum":
            return values.sum()
        return group_mean(values, target >= 0) + group_mean(values, target < 0)


def branch_of(outputs: NetworkOutputs, kind: type[_B]) -> _B:
    """Return the branch of a network, which is of the kind that ``create_branch`` returned."""
    assert isinstance(outputs.branch, kind)
    return outputs.branch


def group_mean(values: Tensor, group: Tensor) -> Tensor:
    """Return the mean over a group of samples; zero if there are none."""
    weights = group.to(values.dtype)
    return (values * weights).sum() / weights.sum().clamp(min=1)


def cross_entropy(logits: Tensor, target: Tensor) -> Tensor:
    """Return the cross-entropy of in-domain samples, and zero for OOD samples, B."""
    return F.cross_entropy(logits, target.clamp(min=-1), reduction="none", ignore_index=-1)


def at_label(values: Tensor, target: Tensor) -> Tensor:
    """Return the column of each in-domain sample's label, and zero for OOD samples, B."""
    found = values.gather(1, target.clamp(min=0).unsqueeze(1)).squeeze(1)
    return torch.where(target >= 0, found, 0.0)


def spread(value: Tensor, target: Tensor) -> Tensor:
    """
    Return one value per sample such that the sum of the means over both groups is ``value``.

    It is for losses of whole batches. In-domain samples get the value; OOD samples get it in a
    batch without any others.
    """
    in_domain = target >= 0
    return torch.where(in_domain if bool(in_domain.any()) else ~in_domain, value, 0.0)
