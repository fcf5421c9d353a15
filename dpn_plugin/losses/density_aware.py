"""The loss of density-aware evidential deep learning; the density enters at test time."""

import torch
from torch import Tensor

from dpn_plugin.functional import dirichlet_kl
from dpn_plugin.losses.checks import check_number
from dpn_plugin.losses.evidence import square_errors
from dpn_plugin.losses.grouped import InDomainLoss, one_hot, softened
from dpn_plugin.papers import DENSITY_AWARE, loss_info


class DensityAwareLoss(InDomainLoss):
    r"""
    Loss from *Uncertainty Estimation by Density Aware Evidential Deep Learning* (DAEDL).

    With :math:`\alpha = e^z`, :math:`\alpha_0 = \sum_c \alpha_c` and :math:`p = \alpha / \alpha_0`
    it is

    .. math::
        \mathcal{L} = \mathbb{E}_{in}\Bigl[
        \sum_c (y_c - p_c)^2 + \frac{p_c (1 - p_c)}{\alpha_0 + 1}
        + \lambda\, \text{KL}[\text{Dir}(\tilde\alpha) \,\|\, \text{Dir}(1, \dots, 1)]\Bigr],

    where :math:`\tilde\alpha` is :math:`\alpha` with a one for the right class. At test time
    :class:`~dpn_plugin.detectors.DensityAware` multiplies the logits by a normalised density of the
    features.

    The method is trained on in-domain data; OOD samples are discarded with a warning.

    .. note:: The authors add :math:`10^{-6}` to :math:`\alpha`, and once more in the divergence. In
        log space this is not needed.

    .. note:: Exact for logits in [-60, 60]; beyond, :math:`z` is replaced by
        :func:`~dpn_plugin.losses.grouped.softened` logits.
    """

    info = loss_info(DENSITY_AWARE, supervised=False)

    def __init__(
        self,
        kl_weight: float = 0.05,
        reduction: str = "mean",
        num_classes: int | None = None,
    ) -> None:
        r"""
        Create the loss.

        :param kl_weight: weight :math:`\lambda \geq 0` of the divergence; the authors' default for
            CIFAR-10 is 0.05
        :param reduction: one of ``mean``, ``sum`` or ``none``; with ``none``, OOD entries are zero
        :param num_classes: number of classes that the logits must have; any if ``None``
        """
        super().__init__(reduction, num_classes)
        self.kl_weight = check_number("kl_weight", kl_weight, least=0)

    def per_sample(self, logits: Tensor, target: Tensor) -> Tensor:
        """Return the expected square error and the weighted divergence of each sample."""
        right, z = one_hot(target, logits), softened(logits)
        wrong = torch.where(right, 0.0, z)
        divergence = dirichlet_kl(wrong, torch.zeros_like(wrong))
        return square_errors(z, right).sum(dim=1) + self.kl_weight * divergence

    def extra_repr(self) -> str:
        """Return the arguments for ``repr``."""
        return f"kl_weight={self.kl_weight}"
