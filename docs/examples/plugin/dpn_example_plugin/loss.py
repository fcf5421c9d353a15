"""A loss that uses outliers."""

import torch
from pytorch_ood.api import LossInfo, Representation, Task
from torch import nn


class FocalLoss(nn.Module):
    """Focal loss of in-domain samples, cross-entropy to the uniform distribution of outliers."""

    info = LossInfo(tasks={Task.CLASSIFICATION}, inputs={Representation.LOGITS}, supervised=True)

    def __init__(self, focus: float = 2.0, gamma: float = 0.5, reduction: str = "mean"):
        """
        :param focus: how strongly samples that are already classified correctly are down-weighted
        :param gamma: weight of the outliers
        :param reduction: ``mean``, ``sum``, or ``none`` for one value per sample
        """
        super().__init__()
        self.focus = focus
        self.gamma = gamma
        self.reduction = reduction

    def forward(self, logits, target):
        """
        Return the loss, or one value per sample with ``reduction="none"``.

        :param logits: shape B x K
        :param target: shape B; below 0 is OOD
        """
        log_p = torch.log_softmax(logits, dim=1)
        right = log_p.gather(1, target.clamp(min=0)[:, None])[:, 0]
        focal = -((1 - right.exp()) ** self.focus) * right
        values = torch.where(target >= 0, focal, -self.gamma * log_p.mean(dim=1))
        return values if self.reduction == "none" else getattr(values, self.reduction)()
