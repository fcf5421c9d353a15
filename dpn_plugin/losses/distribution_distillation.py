"""Ensemble distribution distillation: a Dirichlet for the predictions of an ensemble."""

import math

import torch
from torch import Tensor

from dpn_plugin.errors import UserError, UserTypeError
from dpn_plugin.functional import dirichlet_nll
from dpn_plugin.losses.checks import check_integer, check_number
from dpn_plugin.losses.grouped import InDomainLoss, softened
from dpn_plugin.papers import ENSEMBLE_DISTILLATION, loss_info


class DistributionDistillationLoss(InDomainLoss):
    r"""
    Loss from *Ensemble Distribution Distillation* (EnD\ :sup:`2`).

    Of its columns the first :math:`K` are the logits :math:`z` of the network, the others the
    logits of the :math:`M` members of an ensemble, :math:`K` for each. With the members'
    probabilities :math:`\pi_m` at temperature :math:`T`, smoothed to
    :math:`(1 - \epsilon) \pi_m + \epsilon / K`, it is

    .. math::
        \mathcal{L} = -\mathbb{E}_{in}\, \frac{1}{M} \sum_m \ln \text{Dir}(\pi_m; \alpha),
        \quad \alpha = e^z.

    The temperature is :math:`T_0` for the first half of the annealing, falls linearly to one in the
    second half, and stays there. A training loop sets the epoch with :meth:`set_epoch`. Before the
    first call the temperature is one.

    The labels are not used, except that OOD samples are discarded with a warning.

    .. note:: The authors divide the network's logits by the temperature too, and multiply the loss
        by its square: :math:`\alpha = e^{z / T}`, :math:`T^2 \mathcal{L}`. So does
        ``scale_logits=True``. Members are closer together at a high temperature, so that
        :math:`\ln \alpha` is large there and :math:`z` is :math:`T` times as large; it has to fall
        by that factor while the temperature does, for which a short training has too few steps
        (its loss explodes).

    .. note:: The authors add :math:`10^{-8}` to probabilities and concentrations. In log space this
        is not needed.

    .. note:: Exact for :math:`\ln \alpha` in [-60, 60]; beyond, it is replaced by
        :func:`~dpn_plugin.losses.grouped.softened` logits.
    """

    info = loss_info(ENSEMBLE_DISTILLATION, supervised=False)

    def __init__(
        self,
        num_classes: int,
        *,
        members: int = 3,
        temperature: float = 10.0,
        annealing_epochs: int = 60,
        smoothing: float = 1e-3,
        scale_logits: bool = False,
        reduction: str = "mean",
    ) -> None:
        r"""
        Create the loss.

        :param num_classes: number of classes :math:`K`
        :param members: number of members :math:`M`
        :param temperature: :math:`T_0 \geq 1`; the paper takes 10
        :param annealing_epochs: epochs until the temperature is one; the paper takes 60 of 90
        :param smoothing: :math:`\epsilon`, from 0 to below 1
        :param scale_logits: whether the temperature applies to the network's logits, too
        :param reduction: one of ``mean``, ``sum`` or ``none``; with ``none``, OOD entries are zero
        """
        super().__init__(reduction, check_integer("num_classes", num_classes, least=2))
        self.members = check_integer("members", members, least=1)
        self.first_temperature = check_number("temperature", temperature, least=1)
        self.annealing_epochs = check_integer("annealing_epochs", annealing_epochs, least=1)
        self.smoothing = check_number("smoothing", smoothing, least=0)
        if self.smoothing >= 1:
            raise UserError(f"smoothing must be below 1, not {smoothing}.")
        if not isinstance(scale_logits, bool):
            raise UserTypeError(f"scale_logits must be True or False, not {scale_logits!r}.")
        self.scale_logits = scale_logits
        # not a buffer: it follows from the epoch, so checkpoints do not store it
        self.temperature = 1.0

    @property
    def columns(self) -> int:
        """Number of columns: the network's logits, and those of all members."""
        assert self.num_classes is not None
        return (1 + self.members) * self.num_classes

    def check_columns(self, logits: Tensor) -> None:
        """Raise a :class:`UserError` if there are not the logits of a network and its members."""
        if logits.shape[1] != self.columns:
            raise UserError(
                f"The logits have {logits.shape[1]} columns (shape {tuple(logits.shape)}), but a "
                f"network and {self.members} members with {self.num_classes} classes each have "
                f"{self.columns}."
            )

    def set_epoch(self, epoch: int) -> None:
        """
        Set the temperature for an epoch.

        :param epoch: number of finished epochs, from 0 on
        """
        done = check_integer("epoch", epoch, least=0) / self.annealing_epochs
        left = min(1.0, max(0.0, 2 - 2 * done))
        self.temperature = 1 + left * (self.first_temperature - 1)

    def log_concentrations(self, outputs: Tensor) -> Tensor:
        """Return the network's own logits."""
        return outputs[:, : self.num_classes]

    def per_sample(self, logits: Tensor, target: Tensor) -> Tensor:
        """Return the negative log-likelihood of the members' probabilities for each sample."""
        classes = self.columns // (1 + self.members)
        own, *members = torch.split(logits, classes, dim=1)
        log_p = torch.log_softmax(torch.stack(members) / self.temperature, dim=2)
        if self.smoothing:
            floor = torch.full_like(log_p, math.log(self.smoothing / classes))
            log_p = torch.logaddexp(log_p + math.log1p(-self.smoothing), floor)
        if not self.scale_logits:
            return dirichlet_nll(softened(own), log_p)
        return self.temperature**2 * dirichlet_nll(softened(own / self.temperature), log_p)

    def extra_repr(self) -> str:
        """Return the arguments for ``repr``."""
        return (
            f"num_classes={self.num_classes}, members={self.members}, "
            f"temperature={self.temperature}, smoothing={self.smoothing}, "
            f"scale_logits={self.scale_logits}"
        )
