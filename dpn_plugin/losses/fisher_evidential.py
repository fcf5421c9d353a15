"""Evidential deep learning weighted by the Fisher information of the Dirichlet."""

import torch
from torch import Tensor

from dpn_plugin.functional import dirichlet_kl, trigamma_remainder
from dpn_plugin.losses.checks import check_number
from dpn_plugin.losses.evidence import (
    AnnealedLoss,
    border_of,
    check_evidence,
    evidential_log_concentration,
    square_errors,
    without_evidence,
)
from dpn_plugin.losses.grouped import one_hot, softened
from dpn_plugin.papers import FISHER_EVIDENTIAL, loss_info


class FisherEvidentialLoss(AnnealedLoss):
    r"""
    Loss from *Uncertainty Estimation by Fisher Information-based Evidential Deep Learning*
    (:math:`\mathcal{I}`-EDL).

    With :math:`\alpha = 1 + e(z)`, :math:`S = \sum_c \alpha_c` and :math:`p = \alpha / S` it is

    .. math::
        \mathcal{L} = \mathbb{E}_{in}\Bigl[
        \sum_c \Bigl((y_c - p_c)^2 + \frac{p_c (1 - p_c)}{S + 1}\Bigr) \psi'(\alpha_c)
        - w \ln \det I(\alpha)
        + \lambda_t\, \text{KL}[\text{Dir}(\tilde\alpha) \,\|\, \text{Dir}(1, \dots, 1)]\Bigr],

    where :math:`I(\alpha) = \operatorname{diag}(\psi'(\alpha)) - \psi'(S)` is the Fisher
    information and :math:`\tilde\alpha` is :math:`\alpha` with a one for the right class. The
    weight :math:`\lambda_t = \min(1, t / T)` grows with the epoch :math:`t`.

    The method is trained on in-domain data; OOD samples are discarded with a warning.

    .. note:: The authors compute :math:`1 - \sum_c \psi'(S) / \psi'(\alpha_c)`, whose digits cancel
        for large concentrations; see :func:`fisher_log_determinant`.

    .. note:: Samples with evidence for no class have no gradient in the paper's loss. For them a
        term is added that raises the right class, as in :class:`EvidentialLoss`. With ``exp``,
        :math:`z` beyond 60 is replaced by :func:`~dpn_plugin.losses.grouped.softened` logits.
    """

    info = loss_info(FISHER_EVIDENTIAL, supervised=False)

    def __init__(
        self,
        fisher_weight: float = 0.05,
        evidence: str = "softplus",
        annealing_epochs: int = 10,
        reduction: str = "mean",
        num_classes: int | None = None,
    ) -> None:
        r"""
        Create the loss.

        :param fisher_weight: weight :math:`w \geq 0` of the log-determinant; the authors take 0.05
            for CIFAR-10 and 0.005 for MNIST
        :param evidence: :math:`e(z)`: ``relu``, ``exp`` or ``softplus``
        :param annealing_epochs: epochs :math:`T \geq 1` until the divergence has its full weight
        :param reduction: one of ``mean``, ``sum`` or ``none``; with ``none``, OOD entries are zero
        :param num_classes: number of classes that the logits must have; any if ``None``
        """
        super().__init__(annealing_epochs, reduction, num_classes)
        check_evidence(evidence)
        self.fisher_weight = check_number("fisher_weight", fisher_weight, least=0)
        self.evidence = evidence

    def log_concentrations(self, outputs: Tensor) -> Tensor:
        """Return the log-concentrations of a network's outputs."""
        return evidential_log_concentration(outputs, self.evidence)

    def per_sample(self, logits: Tensor, target: Tensor) -> Tensor:
        """Return the weighted errors, determinant and divergence of each sample."""
        right, soft = one_hot(target, logits), softened(logits)
        z = soft if self.evidence == "exp" else logits
        log_alpha = evidential_log_concentration(z, self.evidence)
        wrong = torch.where(right, 0.0, log_alpha)
        divergence = dirichlet_kl(wrong, torch.zeros_like(wrong))
        error = (square_errors(log_alpha, right) * torch.exp(_log_trigamma(log_alpha))).sum(dim=1)
        fisher = self.fisher_weight * fisher_log_determinant(log_alpha)
        rescue = without_evidence(soft, right, border_of(self.evidence))
        return error - fisher + self.kl_weight * divergence + rescue

    def extra_repr(self) -> str:
        """Return the arguments for ``repr``."""
        return (
            f"fisher_weight={self.fisher_weight}, evidence={self.evidence!r}, "
            f"kl_weight={self.kl_weight}"
        )


def fisher_log_determinant(log_alpha: Tensor) -> Tensor:
    r"""
    Return :math:`\ln \det I(\alpha)` of a Dirichlet with concentrations of one or more.

    The determinant is :math:`\prod_c \psi'(\alpha_c)\, [1 - \sum_c \psi'(\alpha_0) /
    \psi'(\alpha_c)]`. With :math:`u(a) = a - 1 / \psi'(a)`, which lies between 0.39 and 0.5 for
    :math:`a \geq 1`, the bracket is

    .. math:: \psi'(\alpha_0) \Bigl[\sum_c u(\alpha_c) - u(\alpha_0)\Bigr],

    and nothing cancels.

    :param log_alpha: log-concentrations of zero or more, classes in dimension 1
    """
    log_s = torch.logsumexp(log_alpha, dim=1)
    gap = _inverse_gap(log_alpha).sum(dim=1) - _inverse_gap(log_s)
    return _log_trigamma(log_alpha).sum(dim=1) + _log_trigamma(log_s) + torch.log(gap)


def _log_trigamma(z: Tensor) -> Tensor:
    return torch.log1p(trigamma_remainder(z) * torch.exp(-z)) - z


def _inverse_gap(z: Tensor) -> Tensor:
    """Return a - 1 / psi'(a) = a b / (a + b)."""
    b = trigamma_remainder(z)
    return b / (1 + b * torch.exp(-z))
