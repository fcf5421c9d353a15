"""Losses of pytorch-ood that need an output beside the classes, or the features of samples."""

from collections.abc import Callable
from typing import Any

import torch
from pytorch_ood import loss as host
from torch import Tensor, nn
from torch.nn import functional as F

from dpn_plugin.losses.branches import Background, Branch, Confidence, WeightedEnergy
from dpn_plugin.losses.checks import check_integer, check_number
from dpn_plugin.losses.feature_loss import (
    FeatureLoss,
    NetworkOutputs,
    branch_of,
    cross_entropy,
    spread,
)


class BackgroundClassLoss(FeatureLoss):
    """
    Cross-entropy with a class of its own for OOD samples, see
    :class:`pytorch_ood.loss.BackgroundClassLoss`.
    """

    info = host.BackgroundClassLoss.info

    def __init__(self, num_classes: int, reduction: str = "mean") -> None:
        """
        Create the loss.

        :param num_classes: number of classes without the background
        :param reduction: one of ``mean``, ``sum`` or ``none``
        """
        super().__init__(num_classes, reduction)
        self.loss = host.BackgroundClassLoss(num_classes, reduction="none")

    def create_branch(self, width: int) -> Branch:
        """Return the logit of the background."""
        return Background(width)

    def per_sample(self, outputs: NetworkOutputs, target: Tensor) -> Tensor:
        """Return the cross-entropy of each sample."""
        background = branch_of(outputs, Background).background(outputs.features)
        return self.loss(torch.cat([outputs.logits, background], dim=1), target)


class ConfidenceLoss(FeatureLoss):
    r"""
    Loss from *Learning Confidence for Out-of-Distribution Detection in Neural Networks*.

    .. math:: \mathcal{L} = -\ln\bigl(c' p_y + 1 - c'\bigr) - \lambda \ln c

    The confidence :math:`c` lets the network ask for the label. As in the paper, a random half of
    the samples of a batch gets none (:math:`c' = 1`), and :math:`\lambda` is changed by 1 % after
    every step, so that the second term stays near a budget.

    .. note:: Without hints for half of the samples and with a fixed weight, this is
        :class:`pytorch_ood.loss.ConfidenceLoss`. The authors also perturb inputs at test time.
    """

    info = host.ConfidenceLoss.info
    weight: Tensor

    def __init__(
        self,
        num_classes: int,
        alpha: float = 0.1,
        budget: float = 0.3,
        hints: float = 0.5,
        reduction: str = "mean",
    ) -> None:
        r"""
        Create the loss.

        :param num_classes: number of classes
        :param alpha: :math:`\lambda` of the first step, the authors' 0.1
        :param budget: of :math:`-\ln c`, the authors' 0.3; 0 keeps :math:`\lambda` as it is
        :param hints: share of the samples that may ask for the label
        :param reduction: one of ``mean``, ``sum`` or ``none``
        """
        super().__init__(num_classes, reduction)
        self.budget = check_number("budget", budget, least=0)
        self.hints = check_number("hints", hints, least=0)
        weight = torch.tensor(check_number("alpha", alpha, above=0))
        self.register_buffer("weight", weight)

    def create_branch(self, width: int) -> Branch:
        """Return the logit of the confidence."""
        return Confidence(width)

    def per_sample(self, outputs: NetworkOutputs, target: Tensor) -> Tensor:
        """Return the loss of each sample; zero for OOD samples."""
        branch = branch_of(outputs, Confidence)
        logit = branch.confidence(outputs.features).squeeze(1)
        in_domain = target >= 0
        cost = -F.logsigmoid(logit) * in_domain
        weight = self.weight.clone()  # the one of this step: it is changed in place below
        hinted = torch.ones_like(logit)
        if branch.training:
            hinted = (torch.rand(logit.shape) < self.hints).to(logit)
            self._adapt(cost.detach(), in_domain)
        return self._likelihood(outputs.logits, logit, hinted, target) + weight * cost

    @staticmethod
    def _likelihood(logits: Tensor, logit: Tensor, hinted: Tensor, target: Tensor) -> Tensor:
        """Return the negative logarithm of the probability of the label, after the hint."""
        plain = cross_entropy(logits, target)
        # ln(c p + 1 - c), from ln c, ln p and ln(1 - c)
        asked = -torch.logaddexp(F.logsigmoid(logit) - plain, F.logsigmoid(-logit))
        return torch.where(hinted > 0, asked, plain) * (target >= 0)

    def _adapt(self, cost: Tensor, in_domain: Tensor) -> None:
        if self.budget:
            mean = cost.sum() / in_domain.sum().clamp(min=1)
            self.weight.mul_(torch.where(mean > self.budget, 1 / 0.99, 1 / 1.01))


class ObjectosphereLoss(FeatureLoss):
    """
    Loss from *Reducing Network Agnostophobia*, see :class:`pytorch_ood.loss.ObjectosphereLoss`.

    The features of in-domain samples are kept longer than ``xi``, those of OOD samples short.
    """

    info = host.ObjectosphereLoss.info

    def __init__(
        self, num_classes: int, alpha: float = 1e-4, xi: float = 50.0, reduction: str = "mean"
    ) -> None:
        """
        Create the loss.

        :param num_classes: number of classes
        :param alpha: weight of the lengths; the authors' 0.0001
        :param xi: least length of in-domain features; the authors' 50
        :param reduction: one of ``mean``, ``sum`` or ``none``
        """
        super().__init__(num_classes, reduction)
        alpha = check_number("alpha", alpha, least=0)
        self.loss = host.ObjectosphereLoss(alpha, check_number("xi", xi, least=0), "none")

    def per_sample(self, outputs: NetworkOutputs, target: Tensor) -> Tensor:
        """Return the loss of each sample."""
        return self.loss(outputs.logits, outputs.features, target)


class VOSRegLoss(FeatureLoss):
    """
    Loss from *VOS: Learning What You Don't Know by Virtual Outlier Synthesis* with outliers that
    are given, see :class:`pytorch_ood.loss.VOSRegLoss`.
    """

    info = host.VOSRegLoss.info

    def __init__(self, num_classes: int, alpha: float = 0.1, reduction: str = "mean") -> None:
        """
        Create the loss.

        :param num_classes: number of classes
        :param alpha: weight of the regularisation; the authors' 0.1
        :param reduction: one of ``mean``, ``sum`` or ``none``
        """
        super().__init__(num_classes, reduction)
        self.alpha = check_number("alpha", alpha, least=0)

    def create_branch(self, width: int) -> Branch:
        """Return the weights of the energy and their logistic regression."""
        return WeightedEnergy(self.num_classes)

    def per_sample(self, outputs: NetworkOutputs, target: Tensor) -> Tensor:
        """Return the loss of the batch, as a value of each sample."""
        branch = branch_of(outputs, WeightedEnergy)
        loss = host.VOSRegLoss(branch.regression, branch.weights, self.alpha)
        return spread(loss(outputs.logits, target), target)


class VOSLoss(FeatureLoss):
    """
    Loss from *VOS: Learning What You Don't Know by Virtual Outlier Synthesis*, see
    :class:`pytorch_ood.loss.VirtualOutlierSynthesizingRegLoss`.

    Outliers are drawn from Gaussians that are fitted to the features of each class.

    .. note:: They are drawn once ``sample_number`` features of every class have been seen; before,
        and on held-out data, the loss is the cross-entropy.
    """

    info = host.VirtualOutlierSynthesizingRegLoss.info
    needs_linear_head = True
    queue: Tensor
    counts: Tensor

    def __init__(
        self,
        num_classes: int,
        alpha: float = 0.1,
        sample_number: int = 1000,
        select: int = 1,
        sample_from: int = 10000,
        reduction: str = "mean",
    ) -> None:
        """
        Create the loss; the defaults are the authors'.

        :param num_classes: number of classes
        :param alpha: weight of the regularisation
        :param sample_number: features of each class that Gaussians are fitted to
        :param select: outliers of each class that are kept
        :param sample_from: outliers of each class that are drawn
        :param reduction: one of ``mean``, ``sum`` or ``none``
        """
        super().__init__(num_classes, reduction)
        self.alpha = check_number("alpha", alpha, least=0)
        self.sample_number = check_integer("sample_number", sample_number, least=2)
        self.sample_from = check_integer("sample_from", sample_from, least=1)
        self.select = check_integer("select", select, least=1)

    def create_branch(self, width: int) -> Branch:
        """Return the weights of the energy and their logistic regression."""
        return WeightedEnergy(self.num_classes)

    def prepare(self, width: int) -> None:
        """Create the queues of features."""
        size = self.num_classes, self.sample_number, width
        self.register_buffer("queue", torch.zeros(size))
        self.register_buffer("counts", torch.zeros(self.num_classes, dtype=torch.long))

    def per_sample(self, outputs: NetworkOutputs, target: Tensor) -> Tensor:
        """Return the loss of the batch, as a value of each sample; zero for OOD samples."""
        branch = branch_of(outputs, WeightedEnergy)
        in_domain = target >= 0
        if not branch.training or not bool(in_domain.any()):
            return cross_entropy(outputs.logits, target)
        loss = self._host_loss(outputs, branch)
        value = loss(outputs.logits[in_domain], outputs.features[in_domain], target[in_domain])
        self.counts.copy_(torch.tensor([*loss.number_dict.values()]))
        return spread(value, target)

    def _host_loss(self, outputs: NetworkOutputs, branch: WeightedEnergy) -> Any:
        """Return the host's loss with the queues of this one, which it changes in place."""
        assert outputs.head is not None
        shape = torch.nn.Linear(self.queue.shape[2], self.num_classes, device="meta")
        loss = host.VirtualOutlierSynthesizingRegLoss(
            branch.regression,
            branch.weights,
            shape,
            alpha=self.alpha,
            sample_number=1,  # its own queues are replaced
            select=self.select,
            sample_from=self.sample_from,
        )
        loss.fc = _Head(outputs.head)
        loss.to(self.queue.device)
        loss.sample_number = self.sample_number
        loss.data_dict = self.queue
        loss.number_dict = dict(enumerate(self.counts.tolist()))
        return loss


class _Head(nn.Module):
    """The classifier of a network as a module without parameters of its own."""

    heads: tuple[Callable[[Tensor], Tensor]]

    def __init__(self, head: Callable[[Tensor], Tensor]) -> None:
        super().__init__()
        self.heads = (head,)  # in a tuple: a module would be registered, with its parameters

    def forward(self, features: Tensor) -> Tensor:
        """Return logits."""
        return self.heads[0](features)
