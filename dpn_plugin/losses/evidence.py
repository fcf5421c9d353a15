"""What the evidential losses share: evidence from outputs, square errors, a growing divergence."""

from collections.abc import Callable

import torch
from torch import Tensor
from torch.nn import functional as F

from dpn_plugin.functional import computed_dtype
from dpn_plugin.losses.checks import check_choice, check_integer
from dpn_plugin.losses.grouped import BOUND, InDomainLoss, one_hot

#: slope of the term that gives samples without evidence a gradient
SLOPE = 0.01


class AnnealedLoss(InDomainLoss):
    r"""
    A loss of in-domain samples with a divergence whose weight grows with the epochs.

    The weight :math:`\lambda_t = \min(1, t / T)` grows with the epoch :math:`t`, which a training
    loop sets with :meth:`set_epoch`. Before the first call it is one, the full weight.
    """

    def __init__(self, annealing_epochs: int, reduction: str, num_classes: int | None) -> None:
        r"""
        Create the loss.

        :param annealing_epochs: epochs :math:`T \geq 1` until the divergence has its full weight
        :param reduction: one of ``mean``, ``sum`` or ``none``; with ``none``, OOD entries are zero
        :param num_classes: number of classes that the logits must have; any if ``None``
        """
        super().__init__(reduction, num_classes)
        self.annealing_epochs = check_integer("annealing_epochs", annealing_epochs, least=1)
        # not a buffer: it follows from the epoch, so checkpoints do not store it
        self.kl_weight = 1.0

    def set_epoch(self, epoch: int) -> None:
        r"""
        Set :math:`\lambda_t` for an epoch.

        :param epoch: number of finished epochs, from 0 on
        """
        self.kl_weight = min(1.0, check_integer("epoch", epoch, least=0) / self.annealing_epochs)


def evidential_log_concentration(logits: Tensor, evidence: str = "relu") -> Tensor:
    r"""
    Return :math:`\ln \alpha` with :math:`\alpha = 1 + e(z)`: the logits for Dirichlet detectors.

    It is finite for all finite logits. Half precision is computed in float32.

    :param logits: outputs of an evidential network, any shape
    :param evidence: :math:`e(z)`: ``relu``, ``exp`` or ``softplus``
    """
    check_evidence(evidence)
    return _LOG_CONCENTRATIONS[evidence](logits.to(computed_dtype(logits.dtype)))


def check_evidence(evidence: str) -> None:
    """Raise a :class:`UserError` if there is no such evidence."""
    check_choice("evidence", evidence, _LOG_CONCENTRATIONS)


def softplus(z: Tensor) -> Tensor:
    """Return ln(1 + e^z), exact up to the bound; torch's default threshold is off by 2e-9."""
    return F.softplus(z, threshold=BOUND)


def square_errors(log_alpha: Tensor, right: Tensor) -> Tensor:
    r"""
    Return the expected square error of each class, :math:`(y_c - p_c)^2 + p_c (1 - p_c) / (S + 1)`.

    :param log_alpha: log-concentrations, :math:`B \times K`
    :param right: true at the label of each sample
    """
    p, not_p = with_complement(torch.softmax(log_alpha, dim=1))
    one_over = torch.sigmoid(-torch.logsumexp(log_alpha, dim=1, keepdim=True))  # 1 / (1 + S)
    return torch.where(right, not_p, p).square() + p * not_p * one_over


def with_complement(p: Tensor) -> tuple[Tensor, Tensor]:
    """
    Return probabilities and one minus each, with the winner computed from the other classes.

    So both of the winner keep their precision and their gradient where it is close to one.

    :param p: probabilities, classes in dimension 1
    """
    winner = one_hot(p.argmax(dim=1), p)
    losers = torch.where(winner, 0.0, p)
    rest = losers.sum(dim=1, keepdim=True)
    return torch.where(winner, 1 - rest, losers), torch.where(winner, rest, 1 - losers)


def without_evidence(z: Tensor, right: Tensor, border: float) -> Tensor:
    """
    Return zero where a logit is above the border; else a term that raises the right class.

    :param z: softened logits
    :param right: true at the label of each sample
    :param border: below which there is no evidence
    """
    distance = F.relu(border - z.amax(dim=1))
    return SLOPE * distance * (1 - pick(torch.log_softmax(z, dim=1), right))


def border_of(evidence: str) -> float:
    """Return the logit below which evidence is zero, or lost in the rounding of 1 + e(z)."""
    return 0.0 if evidence == "relu" else -BOUND


def pick(values: Tensor, right: Tensor) -> Tensor:
    """Return the value of each sample at its label."""
    return torch.where(right, values, 0.0).sum(dim=1)


def _relu(z: Tensor) -> Tensor:
    # slope 1 at 0, where relu and clamp have slope 0, so that a head of zeros has a gradient
    return torch.log1p(torch.where(z >= 0, z, 0.0))


def _softplus(z: Tensor) -> Tensor:
    return torch.log1p(softplus(z))


_LOG_CONCENTRATIONS: dict[str, Callable[[Tensor], Tensor]] = {
    "relu": _relu,
    "exp": softplus,  # ln(1 + e^z)
    "softplus": _softplus,
}
