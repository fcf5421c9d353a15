"""What all losses share: two groups of samples, in-domain and OOD, and how they are averaged."""

from abc import abstractmethod

import torch
from torch import Tensor, nn

from dpn_plugin.functional import check_logits
from dpn_plugin.functional.logits import computed_dtype
from dpn_plugin.losses.checks import check_choice, check_target

__all__ = ["GroupedLoss", "one_hot"]

REDUCTIONS = ("mean", "sum", "none")


class GroupedLoss(nn.Module):
    r"""
    A loss over in-domain samples (target :math:`\geq 0`) and OOD samples (target :math:`< 0`).

    .. math:: \mathcal{L} = \mathbb{E}_{in}[\ell] + \gamma\, \mathbb{E}_{out}[\ell]

    The mean is taken over each group on its own, so the share of OOD samples in a batch does not
    change their weight; an absent group adds zero. Half precision is computed in float32.
    """

    def __init__(self, gamma: float, reduction: str) -> None:
        r"""
        :param gamma: the weight :math:`\gamma` of the OOD samples
        :param reduction: ``mean`` as above; ``none`` for one value per sample or pixel, those of
            OOD already multiplied by :math:`\gamma`; ``sum`` for the sum of these values
        """
        super().__init__()
        check_choice("reduction", reduction, REDUCTIONS)
        self.gamma = gamma
        self.reduction = reduction

    @abstractmethod
    def per_sample(self, logits: Tensor, target: Tensor) -> Tensor:
        r"""
        :param logits: float32 or float64, shape :math:`B \times K` or
            :math:`B \times K \times H \times W`
        :param target: shape :math:`B` or :math:`B \times H \times W`, int64
        :return: :math:`\ell`, of the target's shape and finite also where it is weighted by zero
        """

    def forward(self, logits: Tensor, target: Tensor) -> Tensor:
        r"""
        :param logits: shape :math:`B \times K` or :math:`B \times K \times H \times W`
        :param target: shape :math:`B` or :math:`B \times H \times W`; labels :math:`< 0` are OOD
        :return: the loss; one value per sample (or pixel) if the reduction is ``none``
        :raises ValueError: if a shape does not fit, a logit is NaN or infinite, or a label is
            :math:`K` or more
        :raises TypeError: if the logits are not floating point or the target not integer
        """
        check_logits(logits)
        check_target(target, logits)
        values = self.per_sample(logits.to(computed_dtype(logits.dtype)), target.long())
        weighted = values * self._weights(target >= 0, values.dtype)
        return weighted if self.reduction == "none" else weighted.sum()

    def _weights(self, in_domain: Tensor, dtype: torch.dtype) -> Tensor:
        # weights, not boolean indexing: no copy, no wait for the device, any group may be empty
        ones = in_domain.to(dtype)
        if self.reduction != "mean":
            return torch.where(in_domain, ones, self.gamma)
        count = ones.sum()
        count_ood = in_domain.numel() - count
        return torch.where(in_domain, 1 / count.clamp(min=1), self.gamma / count_ood.clamp(min=1))


def one_hot(target: Tensor, logits: Tensor) -> Tensor:
    """
    :param target: labels of the logits, below zero for OOD
    :param logits: classes in dimension 1
    :return: a mask of the logits' shape, true at the label of a sample, nowhere for an OOD sample
    """
    classes = torch.arange(logits.shape[1], device=logits.device)
    return classes.view(-1, *[1] * (logits.dim() - 2)) == target.unsqueeze(1)
