"""Relaxed evidential deep learning: a weaker prior, and no variance in the square error."""

import math

import torch
from torch import Tensor

from dpn_plugin.functional import computed_dtype, dirichlet_kl
from dpn_plugin.losses.checks import check_number
from dpn_plugin.losses.evidence import AnnealedLoss, softplus, without_evidence
from dpn_plugin.losses.grouped import BOUND, InDomainLoss, one_hot, softened
from dpn_plugin.papers import RELAXED_EVIDENTIAL, REVISITED_EVIDENTIAL, loss_info


class RevisitedEvidentialLoss(InDomainLoss):
    r"""
    Loss from *Revisiting Essential and Nonessential Settings of Evidential Deep Learning*
    (Re-EDL).

    With the evidence :math:`e = \ln(1 + e^z)` and :math:`\alpha = e + \lambda_2` it is

    .. math::
        \mathcal{L} = \mathbb{E}_{in} \sum_c (y_c - P_c)^2, \quad P_c = \frac{e_c + \lambda_2}
        {e_c + \lambda_1 \sum_{j \neq c} e_j + K \lambda_2}.

    There is no variance and no divergence in it. With :math:`\lambda_1 = 1`, :math:`P` is the mean
    of the Dirichlet.

    The method is trained on in-domain data; OOD samples are discarded with a warning.

    .. note:: :math:`1 - P_y` is computed from the terms of the other classes, which do not cancel.

    .. note:: The gradient of the paper's loss vanishes like :math:`e^z` for a sample without
        evidence. Where no logit is above -60, a term is added that raises the right class, as in
        :class:`EvidentialLoss`.
    """

    info = loss_info(REVISITED_EVIDENTIAL, supervised=False)

    def __init__(
        self,
        lambda1: float = 1.0,
        lambda2: float = 0.8,
        reduction: str = "mean",
        num_classes: int | None = None,
    ) -> None:
        r"""
        Create the loss.

        :param lambda1: weight :math:`\lambda_1 \geq 0` of the other classes' evidence
        :param lambda2: prior concentration :math:`\lambda_2 > 0` of each class; the authors take
            0.8 for CIFAR-10
        :param reduction: one of ``mean``, ``sum`` or ``none``; with ``none``, OOD entries are zero
        :param num_classes: number of classes that the logits must have; any if ``None``
        """
        super().__init__(reduction, num_classes)
        self.lambda1 = check_number("lambda1", lambda1, least=0)
        self.lambda2 = check_number("lambda2", lambda2, above=0)

    def log_concentrations(self, outputs: Tensor) -> Tensor:
        """Return the log-concentrations of a network's outputs."""
        return torch.log(softplus(outputs.to(computed_dtype(outputs.dtype))) + self.lambda2)

    def per_sample(self, logits: Tensor, target: Tensor) -> Tensor:
        """Return the square error of each sample."""
        right = one_hot(target, logits)
        rescue = without_evidence(softened(logits), right, -BOUND)
        return relaxed_error(softplus(logits), right, self.lambda1, self.lambda2) + rescue

    def extra_repr(self) -> str:
        """Return the arguments for ``repr``."""
        return f"lambda1={self.lambda1}, lambda2={self.lambda2}"


class RelaxedEvidentialLoss(AnnealedLoss):
    r"""
    Loss from *R-EDL: Relaxing Nonessential Settings of Evidential Deep Learning*.

    To the square error of :class:`RevisitedEvidentialLoss` it adds

    .. math:: \lambda_t\, \text{KL}[\text{Dir}(\tilde\alpha) \,\|\,
        \text{Dir}(\lambda_2, \dots, \lambda_2)],

    where :math:`\tilde\alpha` is :math:`\alpha` with :math:`\lambda_2` for the right class, and
    :math:`\lambda_t = \min(1, t / T)` grows with the epoch :math:`t`.
    """

    info = loss_info(RELAXED_EVIDENTIAL, supervised=False)
    log_concentrations = RevisitedEvidentialLoss.log_concentrations

    def __init__(
        self,
        lambda1: float = 1.0,
        lambda2: float = 0.1,
        annealing_epochs: int = 10,
        reduction: str = "mean",
        num_classes: int | None = None,
    ) -> None:
        r"""
        Create the loss.

        :param lambda1: weight :math:`\lambda_1 \geq 0` of the other classes' evidence
        :param lambda2: prior concentration :math:`\lambda_2 > 0` of each class; the authors take
            0.1 for CIFAR-10
        :param annealing_epochs: epochs :math:`T \geq 1` until the divergence has its full weight
        :param reduction: one of ``mean``, ``sum`` or ``none``; with ``none``, OOD entries are zero
        :param num_classes: number of classes that the logits must have; any if ``None``
        """
        super().__init__(annealing_epochs, reduction, num_classes)
        self.lambda1 = check_number("lambda1", lambda1, least=0)
        self.lambda2 = check_number("lambda2", lambda2, above=0)

    def per_sample(self, logits: Tensor, target: Tensor) -> Tensor:
        """Return the square error and the weighted divergence of each sample."""
        right, evidence = one_hot(target, logits), softplus(logits)
        prior = torch.full_like(logits, math.log(self.lambda2))
        wrong = torch.where(right, prior, torch.log(evidence + self.lambda2))
        error = relaxed_error(evidence, right, self.lambda1, self.lambda2)
        rescue = without_evidence(softened(logits), right, -BOUND)
        return error + self.kl_weight * dirichlet_kl(wrong, prior) + rescue

    def extra_repr(self) -> str:
        """Return the arguments for ``repr``."""
        return f"lambda1={self.lambda1}, lambda2={self.lambda2}, kl_weight={self.kl_weight}"


def relaxed_error(evidence: Tensor, right: Tensor, lambda1: float, lambda2: float) -> Tensor:
    r"""
    Return :math:`\sum_c (y_c - P_c)^2`, see :class:`RevisitedEvidentialLoss`.

    :param evidence: :math:`e`, classes in dimension 1
    :param right: true at the label of each sample
    :param lambda1: weight of the other classes' evidence
    :param lambda2: prior concentration of each class
    """
    own = evidence + lambda2
    against = lambda1 * _others(evidence) + (evidence.shape[1] - 1) * lambda2
    return (torch.where(right, against, own) / (own + against)).square().sum(dim=1)


def _others(values: Tensor) -> Tensor:
    """Return the sum over the other classes; the sum of all minus the own one would cancel."""
    winner = one_hot(values.argmax(dim=1), values)
    rest = torch.where(winner, 0.0, values).sum(dim=1, keepdim=True)
    return torch.where(winner, rest, values.sum(dim=1, keepdim=True) - values)
