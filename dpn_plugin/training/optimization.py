"""The optimizer of a recipe, and its learning rate from step to step."""

from typing import Any

import torch
from timm.optim import create_optimizer_v2, list_optimizers
from timm.scheduler import create_scheduler_v2
from timm.utils import unwrap_model

from dpn_plugin.errors import unknown_name
from dpn_plugin.runs import Recipe
from dpn_plugin.training.task import GroupedTask


def create_optimizer(task: GroupedTask, recipe: Recipe) -> torch.optim.Optimizer:
    """
    Return the optimizer of the recipe.

    :raises UserError: if timm has no such optimizer
    """
    if recipe.optimizer not in list_optimizers():
        raise unknown_name("optimizer", recipe.optimizer, list_optimizers())
    backbone = unwrap_model(task.get_trainable_module())
    return create_optimizer_v2(
        # only the timm model itself knows the order of its layers
        backbone if recipe.layer_decay is None else backbone.model,
        opt=recipe.optimizer,
        lr=recipe.lr,
        momentum=recipe.momentum,
        weight_decay=recipe.weight_decay,
        layer_decay=recipe.layer_decay,
    )


def create_schedule(optimizer: torch.optim.Optimizer, recipe: Recipe, steps: int) -> Any:
    """
    Return timm's scheduler of the learning rate.

    It is updated every step: updated every epoch, the first epoch of a warm-up would run entirely
    at the lowest rate.

    :param steps: in an epoch
    """
    schedule, _ = create_scheduler_v2(
        optimizer,
        num_epochs=recipe.epochs,
        updates_per_epoch=steps,
        step_on_epochs=False,
        **recipe.schedule.model_dump(),
    )
    return schedule


def set_rate(
    optimizer: torch.optim.Optimizer, scheduler: Any, recipe: Recipe, epoch: int, step: int
) -> None:
    """
    Set the learning rate of the next step: that of the schedule, then that of the fine-tuning.

    :param optimizer: whose rate is set
    :param scheduler: from :func:`create_schedule`
    :param recipe: the schedule and the fine-tuning
    :param epoch: number of the epoch
    :param step: steps done since the start of the training
    """
    if epoch < recipe.epochs:
        scheduler.step_update(step)
        if recipe.schedule.sched == "step":  # that of timm ignores min_lr
            for group in optimizer.param_groups:
                group["lr"] = max(group["lr"], recipe.schedule.min_lr)
    elif recipe.fine_tune:
        for group in optimizer.param_groups:
            group["lr"] = recipe.fine_tune.lr
