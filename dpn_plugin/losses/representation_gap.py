"""The objective that separates in-domain and OOD samples by their precision."""

import torch
from torch import Tensor

from dpn_plugin.losses.checks import check_integer, check_number
from dpn_plugin.losses.grouped import GroupedLoss
from dpn_plugin.papers import REPRESENTATION_GAP, loss_info


class RepresentationGapLoss(GroupedLoss):
    r"""
    Loss from *Towards Maximizing the Representation Gap between In-Domain & Out-of-Distribution
    Examples*.

    .. math::
        \mathcal{L} =
        \mathbb{E}_{in}\Bigl[-\ln p_y - \frac{\lambda_{in}}{K} \sum_c \sigma(z_c)\Bigr]
        + \gamma\, \mathbb{E}_{out}\Bigl[-\frac1K \sum_c \ln p_c
        - \frac{\lambda_{out}}{K} \sum_c \sigma(z_c)\Bigr],
        \quad p = \operatorname{softmax}(z)

    A positive :math:`\lambda_{out}` leads to flat Dirichlets of high precision for OOD samples, a
    negative one to precisions below those of in-domain samples, with the density at the corners of
    the simplex. With :math:`\lambda_{in} = \lambda_{out} = 0` this is outlier exposure.

    .. note:: The expectations are taken over each group separately. The authors average one batch
        of 64 in-domain and 32 OOD samples, which is :math:`\gamma = 0.5` up to a constant factor.
    """

    info = loss_info(REPRESENTATION_GAP, supervised=True)

    def __init__(
        self,
        lambda_in: float,
        lambda_out: float,
        gamma: float = 0.5,
        reduction: str = "mean",
        num_classes: int | None = None,
    ) -> None:
        r"""
        Create the loss.

        :param lambda_in: :math:`\lambda_{in}`, the weight of the precision of in-domain samples
        :param lambda_out: :math:`\lambda_{out}`, the same for OOD samples
        :param gamma: weight :math:`\gamma > 0` of the OOD samples; the paper takes 0.5 for images
            and 1.0 for its synthetic set
        :param reduction: one of ``mean``, ``sum`` or ``none``
        :param num_classes: number of classes that the logits must have; any if ``None``
        """
        super().__init__(check_number("gamma", gamma, above=0), reduction, num_classes)
        self.lambda_in = check_number("lambda_in", lambda_in)
        self.lambda_out = check_number("lambda_out", lambda_out)

    def per_sample(self, logits: Tensor, target: Tensor) -> Tensor:
        """Return the cross-entropy minus the weighted mean sigmoid of each sample."""
        in_domain = target >= 0
        log_p = torch.log_softmax(logits, dim=1)
        label = target.clamp(min=0).unsqueeze(1)
        fit = torch.where(in_domain, log_p.gather(1, label).squeeze(1), log_p.mean(dim=1))
        strength = torch.where(in_domain, fit.new_full((), self.lambda_in), self.lambda_out)
        return -fit - strength * torch.sigmoid(logits).mean(dim=1)

    def extra_repr(self) -> str:
        """Return the arguments for ``repr``."""
        return f"lambda_in={self.lambda_in}, lambda_out={self.lambda_out}, gamma={self.gamma}"


def dpn_plus(
    num_classes: int,
    *,
    lambda_in: float = 1.5,
    lambda_out: float | None = None,
    gamma: float = 0.5,
    reduction: str = "mean",
) -> RepresentationGapLoss:
    r"""
    Return DPN+, which trains OOD samples towards flat Dirichlets of high precision.

    :param num_classes: number of classes :math:`K`, which the logits must have
    :param lambda_in: the paper's 1.5
    :param lambda_out: the paper's :math:`1/K + 0.5` unless given
    :param gamma: weight of the OOD samples
    :param reduction: one of ``mean``, ``sum`` or ``none``
    """
    default = 1 / check_integer("num_classes", num_classes, least=2) + 0.5
    return RepresentationGapLoss(
        lambda_in, default if lambda_out is None else lambda_out, gamma, reduction, num_classes
    )


def dpn_minus(
    num_classes: int,
    *,
    lambda_in: float = 0.5,
    lambda_out: float | None = None,
    gamma: float = 0.5,
    reduction: str = "mean",
) -> RepresentationGapLoss:
    r"""
    Return DPN-, which trains OOD samples towards low precision, the density at all corners.

    :param num_classes: number of classes :math:`K`, which the logits must have
    :param lambda_in: the paper's 0.5
    :param lambda_out: the paper's :math:`1/K - 0.5` unless given
    :param gamma: weight of the OOD samples
    :param reduction: one of ``mean``, ``sum`` or ``none``
    """
    default = 1 / check_integer("num_classes", num_classes, least=2) - 0.5
    return RepresentationGapLoss(
        lambda_in, default if lambda_out is None else lambda_out, gamma, reduction, num_classes
    )
