"""What all losses share: the average over in-domain and OOD samples, and softened logits."""

import warnings
from abc import abstractmethod

import torch
from torch import Tensor, nn

from dpn_plugin.functional import check_logits, computed_dtype
from dpn_plugin.losses.checks import check_choice, check_integer, check_target, check_width

REDUCTIONS = ("mean", "sum", "none")

#: e^60 = 1e26 leaves float32 enough range for sums over classes and for gradients
BOUND = 60.0


class GroupedLoss(nn.Module):
    r"""
    A loss over in-domain samples (target :math:`\geq 0`) and OOD samples (target :math:`< 0`).

    .. math:: \mathcal{L} = \mathbb{E}_{in}[\ell] + \gamma\, \mathbb{E}_{out}[\ell]

    The mean is taken over each group on its own, so the share of OOD samples in a batch does not
    change their weight; an absent group adds zero. Half precision is computed in float32.
    """

    def __init__(self, gamma: float, reduction: str, num_classes: int | None = None) -> None:
        r"""
        Create the loss.

        :param gamma: the weight :math:`\gamma` of the OOD samples
        :param reduction: ``mean`` as above; ``none`` for one value per sample or pixel, those of
            OOD already multiplied by :math:`\gamma`; ``sum`` for the sum of these values
        :param num_classes: number of classes :math:`K` that the logits must have; any if ``None``
        """
        super().__init__()
        check_choice("reduction", reduction, REDUCTIONS)
        if num_classes is not None:
            check_integer("num_classes", num_classes, least=2)
        self.num_classes = num_classes
        self.gamma = gamma
        self.reduction = reduction

    @abstractmethod
    def per_sample(self, logits: Tensor, target: Tensor) -> Tensor:
        r"""
        Return :math:`\ell` in the target's shape, finite also for samples of weight zero.

        :param logits: float32 or float64, shape :math:`B \times K` or
            :math:`B \times K \times H \times W`
        :param target: shape :math:`B` or :math:`B \times H \times W`, int64
        """

    def forward(self, logits: Tensor, target: Tensor) -> Tensor:
        r"""
        Return the loss; one value per sample (or pixel) if the reduction is ``none``.

        :param logits: shape :math:`B \times K` or :math:`B \times K \times H \times W`
        :param target: shape :math:`B` or :math:`B \times H \times W`; labels :math:`< 0` are OOD
        :raises ValueError: if a shape or the number of classes does not fit, a logit is NaN or
            infinite, or a label is :math:`K` or more
        :raises UserTypeError: if the logits are not floating point or the target not integer
        """
        check_logits(logits)
        self.check_columns(logits)
        check_target(target, logits, self.num_classes)
        values = self.per_sample(logits.to(computed_dtype(logits.dtype)), target.long())
        weighted = values * self._weights(target >= 0, values.dtype)
        return weighted if self.reduction == "none" else weighted.sum()

    def check_columns(self, logits: Tensor) -> None:
        """Raise a :class:`UserError` if the logits do not fit ``num_classes``."""
        check_width(logits, self.num_classes)

    def _weights(self, in_domain: Tensor, dtype: torch.dtype) -> Tensor:
        # weights instead of boolean indexing: no copy, no synchronization, a group may be empty
        ones = in_domain.to(dtype)
        if self.reduction != "mean":
            return torch.where(in_domain, ones, self.gamma)
        count = ones.sum()
        count_ood = in_domain.numel() - count
        return torch.where(in_domain, 1 / count.clamp(min=1), self.gamma / count_ood.clamp(min=1))


class InDomainLoss(GroupedLoss):
    """A loss of in-domain samples; OOD samples are discarded with a warning."""

    def __init__(self, reduction: str, num_classes: int | None = None) -> None:
        """
        Create the loss.

        :param reduction: one of ``mean``, ``sum`` or ``none``; with ``none``, OOD entries are zero
        :param num_classes: number of classes that the logits must have; any if ``None``
        """
        super().__init__(gamma=0.0, reduction=reduction, num_classes=num_classes)

    def forward(self, logits: Tensor, target: Tensor) -> Tensor:
        """Return the loss, and warn if OOD samples were discarded."""
        loss = super().forward(logits, target)
        if not torch.compiler.is_compiling() and bool((target < 0).any()):
            warnings.warn(
                "Discarding samples with targets < 0 (OOD), which this loss does not use.",
                stacklevel=2,
            )
        return loss


def one_hot(target: Tensor, logits: Tensor) -> Tensor:
    """
    Return a mask of the logits' shape, true at the label of a sample, nowhere for an OOD sample.

    :param target: labels of the logits, below zero for OOD
    :param logits: classes in dimension 1
    """
    classes = torch.arange(logits.shape[1], device=logits.device)
    return classes.view(-1, *[1] * (logits.dim() - 2)) == target.unsqueeze(1)


def softened(logits: Tensor) -> Tensor:
    r"""
    Return logits whose exponential does not overflow, unchanged up to :math:`b = 60`.

    .. math::
        s(z) = z \text{ for } |z| \leq b, \quad
        s(z) = \operatorname{sign}(z)\,\bigl(b + \ln(1 + |z| - b)\bigr) \text{ beyond}

    Above :math:`b` the concentration :math:`e^{s(z)} = e^b (1 + z - b)` continues along the tangent
    of the exponential; below :math:`-b` it is the reciprocal of that. The function and its slope
    are continuous, and the slope :math:`1 / (1 + |z| - b)` is never zero.
    """
    excess = logits.abs() - BOUND
    beyond = excess > 0
    far = BOUND + torch.log1p(torch.where(beyond, excess, 0.0))
    return torch.where(beyond, torch.sign(logits) * far, logits)
