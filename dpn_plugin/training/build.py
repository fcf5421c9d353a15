"""A recipe as timm's task, optimizer and schedule."""

from typing import Any

import torch
from timm.optim import create_optimizer_v2, list_optimizers
from timm.scheduler import create_scheduler_v2
from timm.utils import unwrap_model
from torch import nn

from dpn_plugin.backbones import Backbone
from dpn_plugin.errors import unknown_name
from dpn_plugin.training.processes import Processes
from dpn_plugin.training.recipe import Recipe
from dpn_plugin.training.task import GroupedTask

__all__ = ["rate_schedule", "training_optimizer", "training_task"]


def training_task(
    backbone: Backbone, criterion: nn.Module, recipe: Recipe, processes: Processes
) -> GroupedTask:
    """:return: the network with its objective, averaged, compiled and distributed as asked for"""
    backbone = backbone.to(processes.device)
    if recipe.channels_last:
        backbone = backbone.to(memory_format=torch.channels_last)
    task = GroupedTask(backbone, criterion, processes.device, recipe.amp)
    if recipe.ema_decay is not None:
        task.setup_ema(decay=recipe.ema_decay)
    if recipe.compile:
        task.compile()
    if processes.world > 1:
        gpu = processes.device.type == "cuda"
        task.prepare_distributed([processes.device] if gpu else None)
    return task


def training_optimizer(task: GroupedTask, recipe: Recipe) -> torch.optim.Optimizer:
    """:raises UserError: if timm has no such optimizer"""
    if recipe.optimizer not in list_optimizers():
        raise unknown_name("optimizer", recipe.optimizer, list_optimizers())
    return create_optimizer_v2(
        unwrap_model(task.get_trainable_module()),
        opt=recipe.optimizer,
        lr=recipe.lr,
        momentum=recipe.momentum,
        weight_decay=recipe.weight_decay,
    )


def rate_schedule(optimizer: torch.optim.Optimizer, recipe: Recipe, steps: int) -> Any:
    """
    :param steps: in an epoch
    :return: timm's scheduler, to be asked step by step: by epochs, all of a warm-up's first epoch
        would be at its lowest rate
    """
    schedule, _ = create_scheduler_v2(
        optimizer,
        num_epochs=recipe.epochs,
        updates_per_epoch=steps,
        step_on_epochs=False,
        **recipe.schedule.model_dump(),
    )
    return schedule
