"""The objectives that pull a network's Dirichlet towards a given one, in both directions."""

import math
from abc import abstractmethod

import torch
from pytorch_ood.api import LossInfo, Paper, Representation, Task
from torch import Tensor

from dpn_plugin.functional import dirichlet_kl
from dpn_plugin.losses.checks import check_number
from dpn_plugin.losses.extremes import softened
from dpn_plugin.losses.grouped import GroupedLoss, one_hot

__all__ = ["ForwardKLLoss", "ReverseKLLoss"]


class _DirichletKLLoss(GroupedLoss):
    """Targets and numerics that both directions share."""

    def __init__(
        self,
        class_concentration: float = 100.0,
        other_concentration: float = 1.0,
        ood_concentration: float = 1.0,
        gamma: float = 1.0,
        reduction: str = "mean",
    ) -> None:
        r"""
        :param class_concentration: target for the right class of an in-domain sample
        :param other_concentration: target for each other class of an in-domain sample
        :param ood_concentration: target for every class of an OOD sample; the paper's ablation sets
            it to 0.1
        :param gamma: weight :math:`\gamma > 0` of the OOD samples
        :param reduction: one of ``mean``, ``sum`` or ``none``
        """
        super().__init__(check_number("gamma", gamma, above=0), reduction)
        self.class_concentration = check_number("class_concentration", class_concentration, above=0)
        self.other_concentration = check_number("other_concentration", other_concentration, above=0)
        self.ood_concentration = check_number("ood_concentration", ood_concentration, above=0)

    @abstractmethod
    def divergence(self, log_model: Tensor, log_target: Tensor) -> Tensor:
        """:return: the divergence of this direction between two log-concentrations"""

    def per_sample(self, logits: Tensor, target: Tensor) -> Tensor:
        return self.divergence(softened(logits), self._log_target(logits, target))

    def _log_target(self, logits: Tensor, target: Tensor) -> Tensor:
        other = logits.new_full((), math.log(self.other_concentration))
        flat = torch.where(target >= 0, other, math.log(self.ood_concentration)).unsqueeze(1)
        return torch.where(one_hot(target, logits), math.log(self.class_concentration), flat)

    def extra_repr(self) -> str:
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
        :func:`~dpn_plugin.losses.extremes.softened` logits.
    """

    info = LossInfo(
        paper=Paper(
            title="Reverse KL-Divergence Training of Prior Networks: Improved Uncertainty and "
            "Adversarial Robustness",
            venue="NeurIPS",
            year=2019,
            url="https://arxiv.org/abs/1905.13472",
            code="https://github.com/KaosEngineer/PriorNetworks",
        ),
        tasks={Task.CLASSIFICATION, Task.SEGMENTATION},
        inputs={Representation.LOGITS},
        supervised=True,
        ai_coded=True,
    )

    def divergence(self, log_model: Tensor, log_target: Tensor) -> Tensor:
        return dirichlet_kl(log_model, log_target)


class ForwardKLLoss(_DirichletKLLoss):
    r"""
    Loss from *Predictive Uncertainty Estimation via Prior Networks*.

    .. math::
        \mathcal{L} = \mathbb{E}_{in}\, \text{KL}[\text{Dir}(\beta^{(y)}) \,\|\, \text{Dir}(\alpha)]
        + \gamma\, \mathbb{E}_{out}\, \text{KL}[\text{Dir}(\beta^{out}) \,\|\, \text{Dir}(\alpha)],
        \quad \alpha = e^z

    .. note:: Exact for logits in [-60, 60]; beyond, :math:`z` is replaced by
        :func:`~dpn_plugin.losses.extremes.softened` logits.
    """

    info = LossInfo(
        paper=Paper(
            title="Predictive Uncertainty Estimation via Prior Networks",
            venue="NeurIPS",
            year=2018,
            url="https://arxiv.org/abs/1802.10501",
            code="https://github.com/KaosEngineer/PriorNetworks",
        ),
        tasks={Task.CLASSIFICATION, Task.SEGMENTATION},
        inputs={Representation.LOGITS},
        supervised=True,
        ai_coded=True,
    )

    def divergence(self, log_model: Tensor, log_target: Tensor) -> Tensor:
        return dirichlet_kl(log_target, log_model)
