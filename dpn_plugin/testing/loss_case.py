"""A loss under test: how to create it, and the batches that it is evaluated on."""

import warnings
from typing import Any

import torch
from pytorch_ood.api import LossInfo
from torch import Tensor, nn

from dpn_plugin.losses import FeatureLoss, NetworkOutputs
from dpn_plugin.plugins import check_options, takes

CLASSES = 5
#: targets by the kind of batch; a loss that does not use OOD samples may still be given some
BATCHES = {"mixed": [0, -1, 3, 4, -1, 1, 2], "in-domain": [0, 3, 4, 1], "OOD": [-1, -1, -1]}


class LossCase:
    """
    A loss under test.

    :param factory: the class of a loss, or a function that makes one
    """

    def __init__(self, factory: Any) -> None:
        self.factory = factory

    def create(self, **options: Any) -> Any:
        """Return a new loss for five classes."""
        if takes(self.factory, "num_classes"):
            options["num_classes"] = CLASSES
        return self.factory(**check_options("The loss", self.factory, options))

    def info(self) -> LossInfo | None:
        """Return what the loss declares."""
        return getattr(self.create(), "info", None)

    def gradient(self, target: list[int], scale: float = 2) -> Tensor:
        """Return the gradient with respect to the logits; zero if the loss is a constant."""
        logits = self.logits(target, scale=scale)
        value = self.value(self.create(), logits, target)
        if not value.requires_grad:  # no sample of the batch counts
            return torch.zeros_like(logits)
        return torch.autograd.grad(value, logits)[0]

    def logits(
        self, target: list[int], dtype: torch.dtype = torch.float32, scale: float = 2
    ) -> Tensor:
        """Return logits that require a gradient, the same at every call."""
        # a loss of other outputs than one per class says how many it takes
        columns = getattr(self.create(), "columns", CLASSES)
        generator = torch.Generator().manual_seed(1)
        drawn = torch.randn(len(target), columns, generator=generator, dtype=torch.float64)
        return (scale * drawn).to(dtype).requires_grad_()

    @staticmethod
    def value(loss: Any, logits: Tensor, target: list[int] | Tensor) -> Tensor:
        """Return the value of the loss, without the host's warnings about ignored OOD samples."""
        outputs = network_outputs(loss, logits) if isinstance(loss, FeatureLoss) else logits
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            return loss(outputs, torch.as_tensor(target))


def network_outputs(loss: FeatureLoss, logits: Tensor) -> NetworkOutputs:
    """
    Return outputs of a network for a loss that reads more than logits, the same at every call.

    :param loss: the loss
    :param logits: B x K; the features follow from them, so that gradients reach them
    """
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(1)
        branch = loss.create_branch(2 * CLASSES)
        head = nn.Linear(2 * CLASSES, CLASSES).to(logits.dtype)
        loss.prepare(2 * CLASSES)
    features = torch.cat([logits, logits.sin()], dim=1)
    # evaluation mode: in training mode, some learn from every batch
    branch = None if branch is None else branch.to(logits.dtype).eval()
    return NetworkOutputs(logits, features, branch, head)
