"""The held-out part of the training data: what the best weights are chosen by."""

import torch
from torch import Tensor, nn

from dpn_plugin.data import Batches
from dpn_plugin.data.transform import Transform
from dpn_plugin.training.material import Material
from dpn_plugin.training.processes import Processes
from dpn_plugin.training.task import GroupedTask

__all__ = ["held_out_metrics"]

_BATCH = 256


@torch.no_grad()
def held_out_metrics(
    task: GroupedTask,
    criterion: nn.Module,
    material: Material,
    transform: Transform,
    processes: Processes,
) -> dict[str, float]:
    """
    :param task: holds the model; its moving average is assessed if it has one
    :param criterion: the objective, with ``reduction="none"``
    :return: loss and accuracy over the held-out samples of both kinds, every process on its share
    :raises NonFinite: if logits or loss are not finite
    """
    model = task.get_eval_model(ema=task.has_ema())
    model.eval()
    sums = torch.zeros(5, dtype=torch.float64)  # losses, counts, right predictions
    for samples in filter(None, (material.held_out, material.held_out_outliers)):
        batches = Batches(
            samples, _BATCH, shuffle=False, rank=processes.rank, world=processes.world
        )
        for x, y in batches.epoch(0):
            if len(y):
                logits = task.logits(model, transform(x.to(processes.device)))
                sums += _sums(task.assessed(criterion, logits, y.to(processes.device)), y)
    model.train()
    loss_in, loss_out, count, count_out, correct = processes.total(sums).tolist()
    loss = loss_in / max(1.0, count) + loss_out / max(1.0, count_out)
    return {"held_out_loss": loss, "held_out_accuracy": correct / max(1.0, count)}


def _sums(result: dict[str, Tensor], y: Tensor) -> Tensor:
    inside = int((y >= 0).sum())
    outside = len(y) - inside
    losses = [float(result["loss_in"]) * inside, float(result["loss_out"]) * outside]
    return torch.tensor([*losses, inside, outside, int(result["correct"])], dtype=torch.float64)
