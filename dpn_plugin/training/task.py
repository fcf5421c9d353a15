"""One forward pass with its loss, in training and over held-out samples."""

import math
from collections.abc import Sequence
from contextlib import AbstractContextManager, nullcontext
from typing import Any

import torch
from timm.task import ClassificationTask
from timm.utils import unwrap_model
from torch import Tensor, nn

from dpn_plugin._distributed import Processes
from dpn_plugin.backbones import Backbone, head_modules
from dpn_plugin.data import Batches, Transform
from dpn_plugin.errors import UserError
from dpn_plugin.losses import FeatureLoss, NetworkOutputs, group_mean
from dpn_plugin.runs import Recipe
from dpn_plugin.training.data import TrainingData

_BATCH = 256


class NonFinite(RuntimeError):
    """Logits or loss are NaN or infinite."""


class GroupedTask(ClassificationTask):
    """
    Passes in-domain and OOD samples through the model together, and averages the loss over each
    group separately.

    :param model: gives logits
    :param criterion: a loss with ``reduction="none"``
    :param device: where the model is
    :param amp: run the model in bfloat16; the loss is computed in float32
    :param teachers: trained models whose logits the loss takes beside those of the model
    """

    def __init__(
        self,
        model: nn.Module,
        criterion: nn.Module,
        device: torch.device,
        amp: bool = False,
        teachers: Sequence[nn.Module] = (),
    ) -> None:
        super().__init__(model, criterion, device=device, verbose=False)
        self.amp = amp
        self.teachers = tuple(teachers)  # not a ModuleList: they are neither trained nor saved

    def forward(self, input: Tensor, target: Tensor, soft: Tensor | None = None) -> dict[str, Any]:
        """
        Return ``loss``, the sum of ``loss_in`` and ``loss_out``, the logits as ``output``, the
        number of correct predictions as ``correct`` and of in-domain samples as ``in_domain``.

        :param input: ready for the model
        :param target: labels; below 0 is OOD
        :param soft: targets as probabilities, for a loss that takes them
        :raises NonFinite: if the logits or the loss are not finite
        """
        outputs = self.outputs(self.trainable_module, input)
        more = () if soft is None else (soft,)
        return self.losses(self.criterion, outputs, target, *more)

    def outputs(self, model: nn.Module, input: Tensor) -> Any:
        """
        Return the float32 logits of ``model``, and beside them those of the teachers; all outputs
        for a loss that reads more than logits.
        """
        with self._precision(input.device.type):
            if isinstance(self.criterion, FeatureLoss):
                backbone = unwrap_model(model)
                found = backbone.outputs(input)
                parts = found.logits.float(), found.features.float()
                return NetworkOutputs(*parts, backbone.branch, backbone.head)
            own = model(input).float()
            if not self.teachers:
                return own
            with torch.no_grad():
                others = [teacher(input).float() for teacher in self.teachers]
        return torch.cat([own, *others], dim=1)

    def _precision(self, device: str) -> AbstractContextManager[Any]:
        # autocast takes as long as a small layer, also where it is disabled
        return torch.autocast(device, dtype=torch.bfloat16) if self.amp else nullcontext()

    @staticmethod
    def losses(criterion: Any, outputs: Any, target: Tensor, *soft: Tensor) -> dict[str, Any]:
        """Return the parts of the loss, and the numbers of correct and of in-domain samples."""
        logits = _logits(outputs)
        if not _all_finite(logits.detach()):
            raise NonFinite("the logits are not finite")
        in_domain = target >= 0
        count = int(in_domain.sum())
        loss_in, loss_out = _group_means(criterion(outputs, target, *soft), in_domain, count)
        loss = loss_in + loss_out
        if not math.isfinite(loss.item()):
            raise NonFinite("the loss is not finite")
        readout = getattr(criterion, "log_concentrations", None)
        scores = logits.detach() if readout is None else readout(logits.detach())
        correct = (scores.argmax(dim=1) == target).sum()
        return {
            "loss": loss,
            "output": logits,
            "loss_in": loss_in.detach(),
            "loss_out": loss_out.detach(),
            "correct": correct,
            "in_domain": count,
        }


def _logits(outputs: Any) -> Tensor:
    """Return the logits that classify."""
    if isinstance(outputs, Tensor):
        return outputs
    if outputs.branch is None:
        return outputs.logits
    was_training = outputs.branch.training
    outputs.branch.eval()  # what the branch learns from a batch, it learns with the loss
    try:
        return outputs.branch.logits(outputs.logits, outputs.features)
    finally:
        outputs.branch.train(was_training)


def _all_finite(values: Tensor) -> bool:
    # the sum alone takes half of the time; it is infinite too if it overflows
    return math.isfinite(values.sum().item()) or bool(torch.isfinite(values).all())


def _group_means(values: Tensor, in_domain: Tensor, count: int) -> tuple[Tensor, Tensor]:
    """Return the means over the ``count`` in-domain and the OOD samples; zero if there are none."""
    if count == len(values):
        # the same to the last bit, also the gradient: all weights are 1, and zero is added
        return values.sum() / values.new_tensor(len(values)), values.new_zeros(())
    return group_mean(values, in_domain), group_mean(values, ~in_domain)


@torch.no_grad()
def held_out_metrics(
    task: GroupedTask,
    criterion: nn.Module,
    data: TrainingData,
    transform: Transform,
    processes: Processes,
) -> dict[str, float]:
    """
    Return loss and accuracy over the held-out samples of both kinds.

    :param task: holds the model; its moving average is evaluated if it has one
    :param criterion: the objective, with ``reduction="none"``
    :param data: holds the samples
    :param transform: what brings a batch to the model
    :param processes: each of which evaluates a share
    :raises NonFinite: if logits or loss are not finite
    """
    model = task.get_eval_model(ema=task.has_ema())
    model.eval()
    sums = torch.zeros(5, dtype=torch.float64)  # losses, counts, correct predictions
    for samples in data.held_out_parts:
        batches = Batches(
            samples, _BATCH, shuffle=False, rank=processes.rank, world=processes.world
        )
        for x, y in batches.epoch(0):
            if len(y):
                outputs = task.outputs(model, transform(x.to(processes.device)))
                sums += _sums(task.losses(criterion, outputs, y.to(processes.device)), y)
    model.train()
    loss_in, loss_out, count, count_out, correct = processes.all_reduce_sum(sums).tolist()
    loss = loss_in / max(1.0, count) + loss_out / max(1.0, count_out)
    return {"held_out_loss": loss, "held_out_accuracy": correct / max(1.0, count)}


def _sums(result: dict[str, Any], y: Tensor) -> Tensor:
    inside = result["in_domain"]
    outside = len(y) - inside
    losses = [float(result["loss_in"]) * inside, float(result["loss_out"]) * outside]
    return torch.tensor([*losses, inside, outside, int(result["correct"])], dtype=torch.float64)


def create_task(
    backbone: Backbone,
    criterion: nn.Module,
    recipe: Recipe,
    processes: Processes,
    teachers: Sequence[Backbone] = (),
) -> GroupedTask:
    """Return the network with its objective, averaged, compiled and distributed as configured."""
    backbone = backbone.to(processes.device)
    if recipe.channels_last:
        backbone = backbone.to(memory_format=torch.channels_last)
    task = GroupedTask(backbone, criterion, processes.device, recipe.amp, teachers)
    if recipe.ema_decay is not None:
        task.setup_ema(decay=recipe.ema_decay)
    if recipe.compile:
        task.compile()
    if processes.world > 1:
        if recipe.freeze_epochs:
            raise UserError("freeze_epochs is for one process, not for torchrun.")
        if isinstance(criterion, FeatureLoss):
            raise UserError("A loss that reads features is for one process, not for torchrun.")
        gpu = processes.device.type == "cuda"
        task.prepare_distributed([processes.device] if gpu else None)
    return task


def freeze_all_but_head(task: GroupedTask, frozen: bool) -> None:
    """
    Train the classifier alone, or all layers again.

    Frozen layers are in evaluation mode, so that statistics of batch norms stay as they are.

    :param task: in training mode
    :param frozen: whether the other layers are frozen
    """
    backbone = unwrap_model(task.get_trainable_module())
    heads = head_modules(backbone.model)
    heads += [] if backbone.branch is None else [backbone.branch]
    own = {id(each) for head in heads for each in head.parameters()}
    for parameter in backbone.parameters():
        parameter.requires_grad_(not frozen or id(parameter) in own)
    if frozen:
        backbone.eval()
        for head in heads:
            head.train()
