"""The KL divergence between a network's Dirichlet and a target Dirichlet, in both directions."""

import math
from abc import abstractmethod

import torch
from torch import Tensor

from dpn_plugin.functional import dirichlet_kl
from dpn_plugin.losses.checks import check_number
from dpn_plugin.losses.grouped import GroupedLoss, one_hot, softened
from dpn_plugin.papers import PRIOR_NETWORKS, REVERSE_KL, loss_info


class _DirichletKLLoss(GroupedLoss):
    """The targets and the numerics of both directions."""

    def __init__(
        self,
        class_concentration: float = 100.0,
        other_concentration: float = 1.0,
        ood_concentration: float = 1.0,
        gamma: float = 1.0,
        reduction: str = "mean",
        num_classes: int | None = None,
    ) -> None:
        r"""
        Create the loss.

        :param class_concentration: target for the right class of an in-domain sample
        :param other_concentration: target for each other class of an in-domain sample
        :param ood_concentration: target for every class of an OOD sample; the paper's ablation sets
            it to 0.1
        :param gamma: weight :math:`\gamma > 0` of the OOD samples
        :param reduction: one of ``mean``, ``sum`` or ``none``
        :param num_classes: number of classes that the logits must have; any if ``None``
        """
        super().__init__(check_number("gamma", gamma, above=0), reduction, num_classes)
        self.class_concentration = check_number("class_concentration", class_concentration, above=0)
        self.other_concentration = check_number("other_concentration", other_concentration, above=0)
        self.ood_concentration = check_number("ood_concentration", ood_concentration, above=0)

    @abstractmethod
    def divergence(self, log_model: Tensor, log_target: Tensor) -> Tensor:
        """Return the divergence of this direction between two log-concentrations."""

    def per_sample(self, logits: Tensor, target: Tensor) -> Tensor:
        """Return the divergence of each sample from its target."""
        return self.divergence(softened(logits), self._log_target(logits, target))

    def _log_target(self, logits: Tensor, target: Tensor) -> Tensor:
        other = logits.new_full((), math.log(self.other_concentration))
        flat = torch.where(target >= 0, other, math.log(self.ood_concentration)).unsqueeze(1)
        return torch.where(one_hot(target, logits), math.log(self.class_concentration), flat)

    def extra_repr(self) -> str:
        """Return the arguments for ``repr``."""
        return (
            f"class_concentration={self.class_concentration}, "
            f"other_concentration={self.other_concentration}, "
            f"ood_concentration={self.ood_concentration}, gamma={self.gamma}"
        )


class ReverseKLLoss(_DirichletKLLoss):
    r"""
    Loss from *Reverse KL-Divergence Training of Prior Networks: Improved Uncertainty and
    Adversarial Robustness*.

    .. math::
        \mathcal{L} = \mathbb{E}_{in}\, \text{KL}[\text{Dir}(\alpha) \,\|\, \text{Dir}(\beta^{(y)})]
        + \gamma\, \mathbb{E}_{out}\, \text{KL}[\text{Dir}(\alpha) \,\|\, \text{Dir}(\beta^{out})],
        \quad \alpha = e^z

    .. note:: Exact for logits in [-60, 60]; beyond, :math:`z` is replaced by
        :func:`~dpn_plugin.losses.grouped.softened` logits.
    """

    info = loss_info(REVERSE_KL, supervised=True)

    def divergence(self, log_model: Tensor, log_target: Tensor) -> Tensor:
        """Return KL(model || target)."""
        return dirichlet_kl(log_model, log_target)


class ForwardKLLoss(_DirichletKLLoss):
    r"""
    Loss from *Predictive Uncertainty Estimation via Prior Networks*.

    .. math::
        \mathcal{L} = \mathbb{E}_{in}\, \text{KL}[\text{Dir}(\beta^{(y)}) \,\|\, \text{Dir}(\alpha)]
        + \gamma\, \mathbb{E}_{out}\, \text{KL}[\text{Dir}(\beta^{out}) \,\|\, \text{Dir}(\alpha)],
        \quad \alpha = e^z

    .. note:: Exact for logits in [-60, 60]; beyond, :math:`z` is replaced by
        :func:`~dpn_plugin.losses.grouped.softened` logits.
    """

    info = loss_info(PRIOR_NETWORKS, supervised=True)

    def divergence(self, log_model: Tensor, log_target: Tensor) -> Tensor:
        """Return KL(target || model)."""
        return dirichlet_kl(log_target, log_model)
