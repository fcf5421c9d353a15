"""A loss that is checked: how to make it, and batches to try it on."""

import warnings
from typing import Any

import torch
from pytorch_ood.api import LossInfo
from torch import Tensor

from dpn_plugin.plugins.options import checked_options, takes

__all__ = ["BATCHES", "LossCase"]

CLASSES = 5
#: targets by the kind of batch; a loss that does not use OOD samples may still meet some
BATCHES = {"mixed": [0, -1, 3, 4, -1, 1, 2], "in-domain": [0, 3, 4, 1], "OOD": [-1, -1, -1]}


class LossCase:
    """
    :param factory: the class of a loss, or a function that makes one
    """

    def __init__(self, factory: Any) -> None:
        self.factory = factory

    def made(self, **options: Any) -> Any:
        """:return: a new loss for five classes"""
        if takes(self.factory, "num_classes"):
            options["num_classes"] = CLASSES
        return self.factory(**checked_options("The loss", self.factory, options))

    @property
    def info(self) -> LossInfo | None:
        """What the loss declares."""
        return getattr(self.made(), "info", None)

    @staticmethod
    def logits(target: list[int], dtype: torch.dtype = torch.float32, scale: float = 2) -> Tensor:
        """:return: logits that want a gradient, the same at every call"""
        generator = torch.Generator().manual_seed(1)
        drawn = torch.randn(len(target), CLASSES, generator=generator, dtype=torch.float64)
        return (scale * drawn).to(dtype).requires_grad_()

    @staticmethod
    def value(loss: Any, logits: Tensor, target: list[int] | Tensor) -> Tensor:
        """:return: the loss; hosts warn about OOD samples that they leave out"""
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            return loss(logits, torch.as_tensor(target))
