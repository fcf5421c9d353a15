"""One training step's forward pass, as a timm task."""

from typing import Any

import torch
from timm.task import ClassificationTask
from torch import Tensor, nn

__all__ = ["GroupedTask", "NonFinite"]


class NonFinite(RuntimeError):
    """Logits or loss are NaN or infinite."""


class GroupedTask(ClassificationTask):
    """
    In-domain and OOD samples of one batch through one forward pass, the loss averaged over each
    group on its own.

    :param model: gives logits
    :param criterion: a loss with ``reduction="none"``
    :param device: where the model is
    :param amp: run the model in bfloat16; the loss is computed in float32
    """

    def __init__(
        self, model: nn.Module, criterion: nn.Module, device: torch.device, amp: bool = False
    ) -> None:
        super().__init__(model, criterion, device=device, verbose=False)
        self.amp = amp

    def forward(self, input: Tensor, target: Tensor) -> dict[str, Tensor]:
        """
        :param input: ready for the model
        :param target: labels; below 0 is OOD
        :return: ``loss`` is the sum of ``loss_in`` and ``loss_out``; ``output`` are the logits;
            ``correct`` counts right predictions
        :raises NonFinite: if the logits or the loss are not finite
        """
        logits = self.logits(self.trainable_module, input)
        return self.assessed(self.criterion, logits, target)

    def logits(self, model: nn.Module, input: Tensor) -> Tensor:
        """:return: float32 logits of ``model``"""
        with torch.autocast(input.device.type, dtype=torch.bfloat16, enabled=self.amp):
            return model(input).float()

    @staticmethod
    def assessed(criterion: Any, logits: Tensor, target: Tensor) -> dict[str, Tensor]:
        """:return: the parts of the loss and the number of right predictions"""
        if not torch.isfinite(logits.detach()).all():
            raise NonFinite("the logits are not finite")
        values = criterion(logits, target)
        in_domain = target >= 0
        loss_in, loss_out = _mean(values, in_domain), _mean(values, ~in_domain)
        loss = loss_in + loss_out
        if not torch.isfinite(loss.detach()):
            raise NonFinite("the loss is not finite")
        correct = (logits.detach().argmax(dim=1) == target).sum()
        return {
            "loss": loss,
            "output": logits,
            "loss_in": loss_in.detach(),
            "loss_out": loss_out.detach(),
            "correct": correct,
        }


def _mean(values: Tensor, group: Tensor) -> Tensor:
    weights = group.to(values.dtype)
    return (values * weights).sum() / weights.sum().clamp(min=1)
