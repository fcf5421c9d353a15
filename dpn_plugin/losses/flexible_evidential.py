"""Flexible evidential deep learning: a flexible Dirichlet in the place of a Dirichlet."""

import torch
from torch import Tensor

from dpn_plugin.errors import UserError
from dpn_plugin.functional import FlexibleDirichlet, computed_dtype
from dpn_plugin.losses.checks import check_integer, check_number
from dpn_plugin.losses.evidence import softplus, with_complement
from dpn_plugin.losses.grouped import InDomainLoss, one_hot, softened
from dpn_plugin.papers import FLEXIBLE_EVIDENTIAL, loss_info


class FlexibleEvidentialLoss(InDomainLoss):
    r"""
    Loss from *Uncertainty Estimation by Flexible Evidential Deep Learning*
    (:math:`\mathcal{F}`-EDL).

    The network has :math:`2K + 1` outputs: :math:`K` for the concentrations :math:`\alpha = e^a`,
    :math:`K` for the allocation :math:`p = \operatorname{softmax}(b)`, and one for the dispersion
    :math:`\tau = \ln(1 + e^t)` of a flexible Dirichlet with the mean
    :math:`\mu = (\alpha + \tau p) / (\alpha_0 + \tau)` and the variances :math:`\sigma^2`. The loss
    is

    .. math::
        \mathcal{L} = \mathbb{E}_{in}\Bigl[\sum_c (y_c - \mu_c)^2 + \sigma_c^2
        + w \sum_c (y_c - p_c)^2\Bigr].

    The method is trained on in-domain data; OOD samples are discarded with a warning.

    .. note:: The logits that detectors see are the log-concentrations of the Dirichlet with the
        same mean and the same sum of variances (:meth:`log_concentrations`). Its class
        probabilities are :math:`\mu`, and the authors' score :math:`\sum_c \sigma_c^2` is that of
        the detector ``total-variance``.

    .. note:: The authors compute :math:`p` and :math:`\tau` by a network with hidden layers each;
        here all outputs belong to one head.

    .. note:: Exact for outputs in [-60, 60]; beyond, they are replaced by
        :func:`~dpn_plugin.losses.grouped.softened` ones.
    """

    info = loss_info(FLEXIBLE_EVIDENTIAL, supervised=False)

    def __init__(
        self, num_classes: int, *, allocation_weight: float = 1.0, reduction: str = "mean"
    ) -> None:
        r"""
        Create the loss.

        :param num_classes: number of classes :math:`K`
        :param allocation_weight: weight :math:`w \geq 0` of the allocation's error
        :param reduction: one of ``mean``, ``sum`` or ``none``; with ``none``, OOD entries are zero
        """
        super().__init__(reduction, check_integer("num_classes", num_classes, least=2))
        self.allocation_weight = check_number("allocation_weight", allocation_weight, least=0)

    @property
    def columns(self) -> int:
        """Number of outputs of the network, 2 K + 1."""
        assert self.num_classes is not None
        return 2 * self.num_classes + 1

    def check_columns(self, logits: Tensor) -> None:
        """Raise a :class:`UserError` if there are not 2 K + 1 outputs."""
        if logits.shape[1] != self.columns:
            raise UserError(
                f"The outputs have {logits.shape[1]} columns (shape {tuple(logits.shape)}), but "
                f"{self.num_classes} classes need 2 x {self.num_classes} + 1 = {self.columns}."
            )

    def log_concentrations(self, outputs: Tensor) -> Tensor:
        """Return the log-concentrations of the Dirichlet that has the same mean and variance."""
        outputs = outputs.to(computed_dtype(outputs.dtype))
        return self._distribution(outputs).log_concentrations()

    def per_sample(self, logits: Tensor, target: Tensor) -> Tensor:
        """Return the expected square error, and that of the allocation, of each sample."""
        flexible = self._distribution(logits)
        right = one_hot(target, flexible.log_p)
        error = _square_error(flexible.log_mean(), right)
        variance = torch.exp(flexible.log_variance()).squeeze(1)
        return error + variance + self.allocation_weight * _square_error(flexible.log_p, right)

    def _distribution(self, outputs: Tensor) -> FlexibleDirichlet:
        classes = self.columns // 2
        alpha, p, tau = torch.split(softened(outputs), [classes, classes, 1], dim=1)
        return FlexibleDirichlet(alpha, torch.log_softmax(p, dim=1), torch.log(softplus(tau)))

    def extra_repr(self) -> str:
        """Return the arguments for ``repr``."""
        return f"num_classes={self.num_classes}, allocation_weight={self.allocation_weight}"


def _square_error(log_p: Tensor, right: Tensor) -> Tensor:
    """Return the sum of (y - p)^2 over the classes."""
    p, not_p = with_complement(torch.exp(log_p))
    return torch.where(right, not_p, p).square().sum(dim=1)
