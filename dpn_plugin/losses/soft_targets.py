"""Cross-entropy with soft targets: outlier exposure, and its mixture of in-domain and outliers."""

import torch
from torch import Tensor

from dpn_plugin.errors import UserError
from dpn_plugin.losses.checks import check_number, check_target, check_width
from dpn_plugin.losses.grouped import GroupedLoss
from dpn_plugin.papers import MIXTURE_EXPOSURE, OUTLIER_EXPOSURE, loss_info


class UniformOutliersLoss(GroupedLoss):
    r"""
    Loss from *Deep Anomaly Detection with Outlier Exposure*: cross-entropy, with the uniform
    distribution as the target of OOD samples.

    .. math::
        \mathcal{L} = \mathbb{E}_{in}[-\ln p_y]
        - \gamma\, \mathbb{E}_{out}\Bigl[\frac1K \sum_c \ln \operatorname{softmax}(z / T)_c\Bigr],
        \quad p = \operatorname{softmax}(z)

    .. note:: The mean is taken over in-domain and OOD samples separately. pytorch-ood's
        ``OutlierExposureLoss`` takes it over the joined batch, so that its weight of the OOD
        samples grows with their share. The paper has no temperature: :math:`T = 1`.
    """

    info = loss_info(OUTLIER_EXPOSURE, supervised=True)

    def __init__(
        self,
        num_classes: int | None = None,
        *,
        gamma: float = 0.5,
        temperature: float = 1.0,
        reduction: str = "mean",
    ) -> None:
        r"""
        Create the loss.

        :param num_classes: number of classes that the logits must have; any if ``None``
        :param gamma: weight :math:`\gamma` of the OOD samples; the authors' 0.5
        :param temperature: :math:`T`, of the OOD samples
        :param reduction: one of ``mean``, ``sum`` or ``none``
        """
        super().__init__(check_number("gamma", gamma, above=0), reduction, num_classes)
        self.temperature = check_number("temperature", temperature, above=0)

    def per_sample(self, logits: Tensor, target: Tensor) -> Tensor:
        """Return the cross-entropy with the label, or with the uniform distribution."""
        in_domain = target >= 0
        scale = torch.where(in_domain, logits.new_ones(()), self.temperature).unsqueeze(1)
        log_p = torch.log_softmax(logits / scale, dim=1)
        label = target.clamp(min=0).unsqueeze(1)
        return -torch.where(in_domain, log_p.gather(1, label).squeeze(1), log_p.mean(dim=1))

    def extra_repr(self) -> str:
        """Return the arguments for ``repr``."""
        return f"gamma={self.gamma}, temperature={self.temperature}"


#: what it is called in the hosts, beside ``dpn_plus`` and ``dpn_minus``
outlier_exposure = UniformOutliersLoss


class MixtureExposureLoss(UniformOutliersLoss):
    r"""
    Loss from *Mixture Outlier Exposure: Towards Out-of-Distribution Detection in Fine-Grained
    Environments*.

    OOD samples may be mixtures of an in-domain sample of class :math:`y`, with share :math:`s`, and
    an outlier. Their target is :math:`s\, e_y + (1 - s) / K`. Without such targets this is outlier
    exposure.
    """

    info = loss_info(MIXTURE_EXPOSURE, supervised=True)

    def __init__(
        self,
        num_classes: int | None = None,
        *,
        gamma: float = 5.0,
        temperature: float = 1.0,
        reduction: str = "mean",
    ) -> None:
        r"""
        Create the loss.

        :param num_classes: number of classes that the logits must have; any if ``None``
        :param gamma: weight :math:`\gamma` of the mixtures; the authors' 5
        :param temperature: :math:`T`, of the mixtures
        :param reduction: one of ``mean``, ``sum`` or ``none``
        """
        super().__init__(num_classes, gamma=gamma, temperature=temperature, reduction=reduction)

    def forward(self, logits: Tensor, target: Tensor, soft: Tensor | None = None) -> Tensor:
        """
        Return the loss; one value per sample if the reduction is ``none``.

        :param logits: B x K
        :param target: labels; below 0 is OOD, and a mixture is OOD
        :param soft: the targets of all samples as probabilities, B x K
        :raises UserError: if a shape, the number of classes or a label does not fit
        """
        if soft is None:
            return super().forward(logits, target)
        check_width(logits, self.num_classes)
        check_target(target, logits)
        if soft.shape != logits.shape:
            raise UserError(
                f"soft targets must have the shape of the logits, {tuple(logits.shape)}, not "
                f"{tuple(soft.shape)}."
            )
        in_domain = target >= 0
        scale = torch.where(in_domain, logits.new_ones(()), self.temperature).unsqueeze(1)
        values = -(soft * torch.log_softmax(logits / scale, dim=1)).sum(dim=1)
        weighted = values * self._weights(in_domain, values.dtype)
        return weighted if self.reduction == "none" else weighted.sum()
