"""Belief matching: the evidence lower bound of a Dirichlet posterior over class probabilities."""

import math

import torch
from torch import Tensor

from dpn_plugin.functional import dirichlet_kl, expected_cross_entropy
from dpn_plugin.losses.checks import check_number
from dpn_plugin.losses.grouped import InDomainLoss, one_hot, softened
from dpn_plugin.papers import BELIEF_MATCHING, loss_info


class BeliefMatchingLoss(InDomainLoss):
    r"""
    Loss from *Being Bayesian about Categorical Probability*.

    .. math::
        \mathcal{L} = \mathbb{E}_{in}\bigl[\lambda\, \text{KL}[\text{Dir}(\alpha) \,\|\,
        \text{Dir}(\beta, \dots, \beta)] - (\psi(\alpha_y) - \psi(\alpha_0))\bigr],
        \quad \alpha = e^z

    The method is trained on in-domain data; OOD samples are discarded with a warning.

    .. note:: The authors leave out the constant of the divergence, which has no gradient.

    .. note:: Exact for logits in [-60, 60]; beyond, :math:`z` is replaced by
        :func:`~dpn_plugin.losses.grouped.softened` logits.
    """

    info = loss_info(BELIEF_MATCHING, supervised=False)

    def __init__(
        self,
        kl_weight: float = 0.01,
        prior: float = 1.0,
        reduction: str = "mean",
        num_classes: int | None = None,
    ) -> None:
        r"""
        Create the loss.

        :param kl_weight: weight :math:`\lambda \geq 0` of the divergence; the authors' default for
            CIFAR is 0.01
        :param prior: concentration :math:`\beta > 0` of the prior
        :param reduction: one of ``mean``, ``sum`` or ``none``; with ``none``, OOD entries are zero
        :param num_classes: number of classes that the logits must have; any if ``None``
        """
        super().__init__(reduction, num_classes)
        self.kl_weight = check_number("kl_weight", kl_weight, least=0)
        self.prior = check_number("prior", prior, above=0)

    def per_sample(self, logits: Tensor, target: Tensor) -> Tensor:
        """Return the weighted divergence and the expected cross-entropy of each sample."""
        z = softened(logits)
        prior = torch.full_like(z, math.log(self.prior))
        fit = expected_cross_entropy(z, one_hot(target, z))
        return self.kl_weight * dirichlet_kl(z, prior) + fit

    def extra_repr(self) -> str:
        """Return the arguments for ``repr``."""
        return f"kl_weight={self.kl_weight}, prior={self.prior}"
