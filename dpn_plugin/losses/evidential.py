"""Evidential deep learning: a Dirichlet from non-negative evidence for every class."""

import warnings
from collections.abc import Callable

import torch
from pytorch_ood.api import LossInfo, Paper, Representation, Task
from torch import Tensor
from torch.nn import functional as F

from dpn_plugin.functional import dirichlet_kl
from dpn_plugin.functional.logits import computed_dtype
from dpn_plugin.functional.special import log_minus_digamma
from dpn_plugin.losses.checks import check_choice, check_integer
from dpn_plugin.losses.extremes import BOUND, softened
from dpn_plugin.losses.grouped import GroupedLoss, one_hot

__all__ = ["EvidentialLoss", "evidential_log_concentration"]

#: slope of the term that leads out of the region without evidence
SLOPE = 0.01


def evidential_log_concentration(logits: Tensor, evidence: str = "relu") -> Tensor:
    r"""
    The logarithm of :math:`\alpha = 1 + e(z)`, which is what Dirichlet detectors take as logits.

    :param logits: outputs of an evidential network, any shape
    :param evidence: :math:`e(z)`: ``relu``, ``exp`` or ``softplus``
    :return: :math:`\ln \alpha`, the same shape; finite for all finite logits, half precision is
        computed in float32
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
    loop gives by :meth:`set_epoch`. Until the first call it is one: the whole objective.

    The method is trained on in-domain data; OOD samples are discarded with a warning.

    .. note:: A sample with evidence for no class has no gradient in the paper's loss, with ReLU as
        soon as no logit is positive. There, and there only, :math:`0.01\, m\, (1 - \ln
        \operatorname{softmax}(z)_y)` is added, with :math:`m` the distance of the largest logit to
        the border: 0 for ``relu``, -60 for ``exp`` and ``softplus``, whose evidence is by then
        lost in :math:`1 + e(z)`. The term is zero at the border, and raises the right class.

    .. note:: ``exp`` is exact for logits up to 60; beyond, :math:`z` is replaced by
        :func:`~dpn_plugin.losses.extremes.softened` logits.
    """

    info = LossInfo(
        paper=Paper(
            title="Evidential Deep Learning to Quantify Classification Uncertainty",
            venue="NeurIPS",
            year=2018,
            url="https://arxiv.org/abs/1806.01768",
        ),
        tasks={Task.CLASSIFICATION, Task.SEGMENTATION},
        inputs={Representation.LOGITS},
        supervised=False,
        ai_coded=True,
    )

    def __init__(
        self,
        form: str = "digamma",
        evidence: str = "relu",
        annealing_epochs: int = 10,
        reduction: str = "mean",
    ) -> None:
        r"""
        :param form: the data term :math:`\ell`: ``digamma``, ``log`` or ``mse``
        :param evidence: :math:`e(z)`: ``relu``, ``exp`` or ``softplus``
        :param annealing_epochs: epochs :math:`T \geq 1` until the divergence has its full weight
        :param reduction: one of ``mean``, ``sum`` or ``none``; with ``none``, OOD entries are zero
        """
        super().__init__(gamma=0.0, reduction=reduction)
        check_choice("form", form, _DATA_TERMS)
        check_choice("evidence", evidence, _LOG_CONCENTRATIONS)
        self.form = form
        self.evidence = evidence
        self.annealing_epochs = check_integer("annealing_epochs", annealing_epochs, least=1)
        # not a buffer: it follows from the epoch, so checkpoints need not hold it
        self.kl_weight = 1.0

    def set_epoch(self, epoch: int) -> None:
        r"""
        :param epoch: number of epochs done, from 0 on; sets :math:`\lambda_t`
        """
        self.kl_weight = min(1.0, check_integer("epoch", epoch, least=0) / self.annealing_epochs)

    def forward(self, logits: Tensor, target: Tensor) -> Tensor:
        loss = super().forward(logits, target)
        if not torch.compiler.is_compiling() and bool((target < 0).any()):
            warnings.warn(
                "Discarding samples with targets < 0 (OOD), which this loss does not use.",
                stacklevel=2,
            )
        return loss

    def per_sample(self, logits: Tensor, target: Tensor) -> Tensor:
        right = one_hot(target, logits)
        soft = softened(logits)
        z = soft if self.evidence == "exp" else logits
        log_alpha = evidential_log_concentration(z, self.evidence)
        wrong = torch.where(right, 0.0, log_alpha)
        divergence = dirichlet_kl(wrong, torch.zeros_like(wrong))
        data = _DATA_TERMS[self.form](log_alpha, right)
        border = 0.0 if self.evidence == "relu" else -BOUND
        return data + self.kl_weight * divergence + _way_out(soft, right, border)

    def extra_repr(self) -> str:
        return f"form={self.form!r}, evidence={self.evidence!r}, kl_weight={self.kl_weight}"


def _relu(z: Tensor) -> Tensor:
    # slope 1 at 0, where relu and clamp have 0: a head initialised with zeros must be able to learn
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
    # told from the losing classes, neither p nor 1 - p of the winner loses its digits or its slope
    p = torch.softmax(log_alpha, dim=1)
    winner = one_hot(p.argmax(dim=1), p)
    losers = torch.where(winner, 0.0, p)
    rest = losers.sum(dim=1, keepdim=True)
    p = torch.where(winner, 1 - rest, losers)
    not_p = torch.where(winner, rest, 1 - losers)
    error = torch.where(right, not_p, p).square().sum(dim=1)
    one_over = torch.sigmoid(-torch.logsumexp(log_alpha, dim=1))  # 1 / (1 + S)
    return error + (p * not_p).sum(dim=1) * one_over


def _way_out(z: Tensor, right: Tensor, border: float) -> Tensor:
    """:return: zero where a logit is above the border; else a slope towards the right class"""
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
