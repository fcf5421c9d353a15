"""Evidential deep learning: a Dirichlet from non-negative evidence for every class."""

from collections.abc import Callable

import torch
from torch import Tensor

from dpn_plugin.functional import dirichlet_kl, log_minus_digamma
from dpn_plugin.losses.checks import check_choice
from dpn_plugin.losses.evidence import (
    AnnealedLoss,
    border_of,
    check_evidence,
    evidential_log_concentration,
    pick,
    square_errors,
    without_evidence,
)
from dpn_plugin.losses.grouped import one_hot, softened
from dpn_plugin.papers import EVIDENTIAL, loss_info


class EvidentialLoss(AnnealedLoss):
    r"""
    Loss from *Evidential Deep Learning to Quantify Classification Uncertainty*.

    With :math:`\alpha = 1 + e(z)`, :math:`S = \sum_c \alpha_c` and :math:`p = \alpha / S` it is

    .. math::
        \mathcal{L} = \mathbb{E}_{in}\bigl[\ell(\alpha, y)
        + \lambda_t\, \text{KL}[\text{Dir}(\tilde\alpha) \,\|\, \text{Dir}(1, \dots, 1)]\bigr],

    where :math:`\tilde\alpha` is :math:`\alpha` with a one for the right class, and

    - ``digamma``: :math:`\ell = \psi(S) - \psi(\alpha_y)`, the expected cross-entropy,
    - ``log``: :math:`\ell = \ln S - \ln \alpha_y`, the negative log of the marginal likelihood,
    - ``mse``: :math:`\ell = \sum_c (y_c - p_c)^2 + p_c (1 - p_c) / (S + 1)`, the expected square
      error.

    The weight :math:`\lambda_t = \min(1, t / T)` grows with the epoch :math:`t`, which a training
    loop sets with :meth:`set_epoch`. Before the first call it is one, the full weight.

    The method is trained on in-domain data; OOD samples are discarded with a warning.

    .. note:: A sample with evidence for no class has no gradient in the paper's loss; with ReLU
        this is the case when no logit is positive. For such samples only,
        :math:`0.01\, m\, (1 - \ln \operatorname{softmax}(z)_y)` is added, where :math:`m` is the
        distance of the largest logit to the border: 0 for ``relu``, -60 for ``exp`` and
        ``softplus``, whose evidence is lost in the rounding of :math:`1 + e(z)` there. The term
        is zero at the border and raises the logit of the right class.

    .. note:: ``exp`` is exact for logits up to 60; beyond, :math:`z` is replaced by
        :func:`~dpn_plugin.losses.grouped.softened` logits.
    """

    info = loss_info(EVIDENTIAL, supervised=False)

    def __init__(
        self,
        form: str = "digamma",
        evidence: str = "relu",
        annealing_epochs: int = 10,
        reduction: str = "mean",
        num_classes: int | None = None,
    ) -> None:
        r"""
        Create the loss.

        :param form: the data term :math:`\ell`: ``digamma``, ``log`` or ``mse``
        :param evidence: :math:`e(z)`: ``relu``, ``exp`` or ``softplus``
        :param annealing_epochs: epochs :math:`T \geq 1` until the divergence has its full weight
        :param reduction: one of ``mean``, ``sum`` or ``none``; with ``none``, OOD entries are zero
        :param num_classes: number of classes that the logits must have; any if ``None``
        """
        super().__init__(annealing_epochs, reduction, num_classes)
        check_choice("form", form, _DATA_TERMS)
        check_evidence(evidence)
        self.form = form
        self.evidence = evidence

    def log_concentrations(self, outputs: Tensor) -> Tensor:
        """Return the log-concentrations of a network's outputs."""
        return evidential_log_concentration(outputs, self.evidence)

    def per_sample(self, logits: Tensor, target: Tensor) -> Tensor:
        """Return the data term and the weighted divergence of each sample."""
        right = one_hot(target, logits)
        soft = softened(logits)
        z = soft if self.evidence == "exp" else logits
        log_alpha = evidential_log_concentration(z, self.evidence)
        wrong = torch.where(right, 0.0, log_alpha)
        divergence = dirichlet_kl(wrong, torch.zeros_like(wrong))
        data = _DATA_TERMS[self.form](log_alpha, right)
        rescue = without_evidence(soft, right, border_of(self.evidence))
        return data + self.kl_weight * divergence + rescue

    def extra_repr(self) -> str:
        """Return the arguments for ``repr``."""
        return f"form={self.form!r}, evidence={self.evidence!r}, kl_weight={self.kl_weight}"


def _digamma(log_alpha: Tensor, right: Tensor) -> Tensor:
    log_s = torch.logsumexp(log_alpha, dim=1)
    of_right = pick(log_minus_digamma(log_alpha), right)
    return _log(log_alpha, right) + of_right - log_minus_digamma(log_s)


def _log(log_alpha: Tensor, right: Tensor) -> Tensor:
    return -pick(torch.log_softmax(log_alpha, dim=1), right)


def _mse(log_alpha: Tensor, right: Tensor) -> Tensor:
    return square_errors(log_alpha, right).sum(dim=1)


_DATA_TERMS: dict[str, Callable[[Tensor, Tensor], Tensor]] = {
    "digamma": _digamma,
    "log": _log,
    "mse": _mse,
}
