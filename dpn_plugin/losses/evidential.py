"""Evidential deep learning: a Dirichlet from non-negative evidence for every class."""

import warnings
from collections.abc import Callable

import torch
from torch import Tensor
from torch.nn import functional as F

from dpn_plugin.functional import computed_dtype, dirichlet_kl, log_minus_digamma
from dpn_plugin.losses.checks import check_choice, check_integer
from dpn_plugin.losses.grouped import BOUND, GroupedLoss, one_hot, softened
from dpn_plugin.papers import EVIDENTIAL, loss_info

#: slope of the term that gives samples without evidence a gradient
SLOPE = 0.01


def evidential_log_concentration(logits: Tensor, evidence: str = "relu") -> Tensor:
    r"""
    Return :math:`\ln \alpha` with :math:`\alpha = 1 + e(z)`: the logits for Dirichlet detectors.

    It is finite for all finite logits. Half precision is computed in float32.

    :param logits: outputs of an evidential network, any shape
    :param evidence: :math:`e(z)`: ``relu``, ``exp`` or ``softplus``
    """
    check_choice("evidence", evidence, _LOG_CONCENTRATIONS)
    return _LOG_CONCENTRATIONS[evidence](logits.to(computed_dtype(logits.dtype)))


class EvidentialLoss(GroupedLoss):
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
        super().__init__(gamma=0.0, reduction=reduction, num_classes=num_classes)
        check_choice("form", form, _DATA_TERMS)
        check_choice("evidence", evidence, _LOG_CONCENTRATIONS)
        self.form = form
        self.evidence = evidence
        self.annealing_epochs = check_integer("annealing_epochs", annealing_epochs, least=1)
        # not a buffer: it follows from the epoch, so checkpoints do not store it
        self.kl_weight = 1.0

    def set_epoch(self, epoch: int) -> None:
        r"""
        Set :math:`\lambda_t` for an epoch.

        :param epoch: number of finished epochs, from 0 on
        """
        self.kl_weight = min(1.0, check_integer("epoch", epoch, least=0) / self.annealing_epochs)

    def forward(self, logits: Tensor, target: Tensor) -> Tensor:
        """Return the loss, and warn if OOD samples were discarded."""
        loss = super().forward(logits, target)
        if not torch.compiler.is_compiling() and bool((target < 0).any()):
            warnings.warn(
                "Discarding samples with targets < 0 (OOD), which this loss does not use.",
                stacklevel=2,
            )
        return loss

    def per_sample(self, logits: Tensor, target: Tensor) -> Tensor:
        """Return the data term and the weighted divergence of each sample."""
        right = one_hot(target, logits)
        soft = softened(logits)
        z = soft if self.evidence == "exp" else logits
        log_alpha = evidential_log_concentration(z, self.evidence)
        wrong = torch.where(right, 0.0, log_alpha)
        divergence = dirichlet_kl(wrong, torch.zeros_like(wrong))
        data = _DATA_TERMS[self.form](log_alpha, right)
        border = 0.0 if self.evidence == "relu" else -BOUND
        return data + self.kl_weight * divergence + _without_evidence(soft, right, border)

    def extra_repr(self) -> str:
        """Return the arguments for ``repr``."""
        return f"form={self.form!r}, evidence={self.evidence!r}, kl_weight={self.kl_weight}"


def _relu(z: Tensor) -> Tensor:
    # slope 1 at 0, where relu and clamp have slope 0, so that a head of zeros has a gradient
    return torch.log1p(torch.where(z >= 0, z, 0.0))


def _exp(z: Tensor) -> Tensor:
    return F.softplus(z, threshold=BOUND)  # ln(1 + e^z); the default threshold is off by 2e-9


def _softplus(z: Tensor) -> Tensor:
    return torch.log1p(F.softplus(z, threshold=BOUND))


def _digamma(log_alpha: Tensor, right: Tensor) -> Tensor:
    log_s = torch.logsumexp(log_alpha, dim=1)
    of_right = _pick(log_minus_digamma(log_alpha), right)
    return _log(log_alpha, right) + of_right - log_minus_digamma(log_s)


def _log(log_alpha: Tensor, right: Tensor) -> Tensor:
    return -_pick(torch.log_softmax(log_alpha, dim=1), right)


def _mse(log_alpha: Tensor, right: Tensor) -> Tensor:
    # computed from the other classes, p and 1 - p of the winner keep their precision and gradient
    p = torch.softmax(log_alpha, dim=1)
    winner = one_hot(p.argmax(dim=1), p)
    losers = torch.where(winner, 0.0, p)
    rest = losers.sum(dim=1, keepdim=True)
    p = torch.where(winner, 1 - rest, losers)
    not_p = torch.where(winner, rest, 1 - losers)
    error = torch.where(right, not_p, p).square().sum(dim=1)
    one_over = torch.sigmoid(-torch.logsumexp(log_alpha, dim=1))  # 1 / (1 + S)
    return error + (p * not_p).sum(dim=1) * one_over


def _without_evidence(z: Tensor, right: Tensor, border: float) -> Tensor:
    """Return zero where a logit is above the border; else a term that raises the right class."""
    distance = F.relu(border - z.amax(dim=1))
    return SLOPE * distance * (1 - _pick(torch.log_softmax(z, dim=1), right))


def _pick(values: Tensor, right: Tensor) -> Tensor:
    return torch.where(right, values, 0.0).sum(dim=1)


_LOG_CONCENTRATIONS: dict[str, Callable[[Tensor], Tensor]] = {
    "relu": _relu,
    "exp": _exp,
    "softplus": _softplus,
}
_DATA_TERMS: dict[str, Callable[[Tensor, Tensor], Tensor]] = {
    "digamma": _digamma,
    "log": _log,
    "mse": _mse,
}
