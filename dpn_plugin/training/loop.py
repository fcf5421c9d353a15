"""The training of one network, from its newest checkpoint to the end."""

import math
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Protocol

import numpy as np
import torch
from timm.optim import create_optimizer_v2, list_optimizers
from timm.scheduler import create_scheduler_v2
from timm.utils import distribute_bn, unwrap_model
from torch import Tensor, nn

from dpn_plugin.backbones import Backbone
from dpn_plugin.data import Augmentation, Batches
from dpn_plugin.data.transform import Transform
from dpn_plugin.errors import UserError, unknown_name
from dpn_plugin.training.checkpoint import Checkpoints
from dpn_plugin.training.held_out import held_out_metrics
from dpn_plugin.training.material import Material
from dpn_plugin.training.processes import Processes
from dpn_plugin.training.recipe import Recipe
from dpn_plugin.training.stopping import StopRequest
from dpn_plugin.training.task import GroupedTask, NonFinite

__all__ = ["Monitor", "Trainer"]

#: one row of ``history.csv``
Row = dict[str, float]


class Monitor(Protocol):
    """Who wants to know how it goes, e.g. a progress bar."""

    def started(self, steps: int, done: int) -> None:
        """Training of a network begins; ``done`` of its ``steps`` were done before."""

    def stepped(self, images: int, parts: dict[str, float]) -> None:
        """A step is done, on that many images of all processes."""

    def finished_epoch(self, row: Row) -> None:
        """An epoch is done."""


class Trainer:
    """
    Trains one network. Every step is a function of the weights, the optimizer's state, the seed and
    the number of the step alone: a run that was stopped anywhere ends like one that was not.

    :param backbone: the network, freshly initialised
    :param losses: the objective for training and the one for selection, with ``reduction="none"``
    :param material: the data, with this network's labels
    :param transform: what brings a batch to the network
    :param recipe: how to train
    :param folder: where checkpoints go
    :param processes: this process and the others
    :param seed: of order, augmentation and dropout
    """

    def __init__(
        self,
        backbone: Backbone,
        losses: tuple[nn.Module, nn.Module],
        material: Material,
        transform: Transform,
        recipe: Recipe,
        folder: Path,
        processes: Processes,
        seed: int,
    ) -> None:
        self.recipe, self.processes, self.seed = recipe, processes, seed
        self.material, self.transform = material, transform
        self.criterion, self.selection = (loss.to(processes.device) for loss in losses)
        self.checkpoints = Checkpoints(folder)
        self.step, self.best_loss = 0, math.inf
        self.history: list[Row] = []
        self.sums: Row = {}  # over the steps of this epoch
        self.best: dict[str, Tensor] = {}
        self.batches, self.outliers = self._batches()
        self.task = self._task(backbone.to(processes.device))
        self.optimizer = self._optimizer()
        # step by step: by epochs, all of a warm-up's first epoch would be at its lowest rate
        self.scheduler, _ = create_scheduler_v2(
            self.optimizer,
            num_epochs=recipe.epochs,
            updates_per_epoch=len(self.batches),
            step_on_epochs=False,
            **recipe.schedule.model_dump(),
        )

    def run(self, monitor: Monitor, stop: StopRequest) -> dict[str, Tensor]:
        """
        :param monitor: is told of every step and epoch
        :param stop: asked after every step
        :return: the weights with the lowest held-out loss
        :raises Stopped: after a checkpoint, if ``stop`` says so
        :raises UserError: if the loss is not finite, or a file cannot be written
        """
        self._resume()
        monitor.started(self._total_steps(), self.step)
        for epoch in range(self.step // len(self.batches), self.recipe.total_epochs):
            self._train_epoch(epoch, monitor, stop)
            monitor.finished_epoch(self.history[-1])
        return self.best

    def _train_epoch(self, epoch: int, monitor: Monitor, stop: StopRequest) -> None:
        begun, images = time.monotonic(), 0
        self._begin_epoch(epoch)
        for inputs, labels in self._stream(epoch):
            parts = self._train_step(inputs, labels, epoch)
            self.step += 1
            images += len(labels)
            self._add({"steps": 1.0, **parts})
            monitor.stepped(len(labels) * self.processes.world, parts)
            done = self.step % len(self.batches) == 0
            if self.processes.any(stop.requested) and not done:
                self._save()
                stop.stop(f"after step {self.step} of {self._total_steps()}")
        self.history.append(self._row(epoch, images, time.monotonic() - begun))
        self.sums = {}
        self._select()
        self._save()
        if self.processes.any(stop.requested) and self.step < self._total_steps():
            stop.stop(f"after epoch {epoch + 1} of {self.recipe.total_epochs}")

    def _train_step(self, inputs: Tensor, labels: Tensor, epoch: int) -> dict[str, float]:
        generator = self._seeded()
        self._set_rate(epoch)
        inputs, labels = (each.to(self.processes.device) for each in (inputs, labels))
        if inputs.ndim == 4:
            inputs = self._augmentation(epoch)(inputs, generator)
        x = self.transform(inputs)
        if self.recipe.channels_last and x.ndim == 4:
            x = x.contiguous(memory_format=torch.channels_last)
        try:
            result = self.task(x, labels)
        except NonFinite as error:
            raise self._diverged(str(error)) from error
        self.optimizer.zero_grad(set_to_none=True)
        result["loss"].backward()
        if self.recipe.clip_grad is not None:
            nn.utils.clip_grad_norm_(self.task.get_clip_parameters(), self.recipe.clip_grad)
        self.optimizer.step()
        self.task.update_ema(step=self.step)
        parts = torch.stack([result[name].float() for name in ("loss", "loss_in", "loss_out")])
        loss, loss_in, loss_out = parts.tolist()
        accuracy = int(result["correct"]) / max(1, int((labels >= 0).sum()))
        return {"loss": loss, "loss_in": loss_in, "loss_out": loss_out, "accuracy": accuracy}

    def _stream(self, epoch: int) -> Iterator[tuple[Tensor, Tensor]]:
        start = self.step - epoch * len(self.batches)
        in_domain = self.batches.epoch(epoch, start)
        if self.outliers is None:
            yield from in_domain
            return
        for (x, y), (x_out, y_out) in zip(
            in_domain, self.outliers.forever(self.step), strict=False
        ):
            yield torch.cat([x, x_out]), torch.cat([y, y_out])

    def _begin_epoch(self, epoch: int) -> None:
        self.task.train()
        set_epoch = getattr(self.criterion, "set_epoch", None)
        if callable(set_epoch):
            set_epoch(epoch)

    def _set_rate(self, epoch: int) -> None:
        if epoch < self.recipe.epochs:
            self.scheduler.step_update(self.step)
        elif self.recipe.fine_tune:
            for group in self.optimizer.param_groups:
                group["lr"] = self.recipe.fine_tune.lr

    def _augmentation(self, epoch: int) -> Augmentation:
        phase = self.recipe.fine_tune if epoch >= self.recipe.epochs else None
        return (phase or self.recipe).augmentation

    def _seeded(self) -> torch.Generator:
        words = [self.seed, self.step, self.processes.rank]
        seed = int(np.random.SeedSequence(words).generate_state(1)[0])
        torch.manual_seed(seed)  # dropout and the like
        return torch.Generator().manual_seed(seed)

    def _batches(self) -> tuple[Batches, Batches | None]:
        rank, world, seed = self.processes.rank, self.processes.world, self.seed
        size = min(self.recipe.batch_size, len(self.material.train) // world)
        batches = Batches(
            self.material.train,
            size,
            shuffle=True,
            seed=seed,
            rank=rank,
            world=world,
            drop_last=True,
        )
        if self.material.outliers is None:
            return batches, None
        size = self.recipe.outlier_batch_size
        return batches, Batches(
            self.material.outliers, size, shuffle=True, seed=seed + 1, rank=rank, world=world
        )

    def _optimizer(self) -> torch.optim.Optimizer:
        recipe = self.recipe
        if recipe.optimizer not in list_optimizers():
            raise unknown_name("optimizer", recipe.optimizer, list_optimizers())
        return create_optimizer_v2(
            unwrap_model(self.task.get_trainable_module()),
            opt=recipe.optimizer,
            lr=recipe.lr,
            momentum=recipe.momentum,
            weight_decay=recipe.weight_decay,
        )

    def _task(self, backbone: Backbone) -> GroupedTask:
        if self.recipe.channels_last:
            backbone = backbone.to(memory_format=torch.channels_last)
        task = GroupedTask(backbone, self.criterion, self.processes.device, self.recipe.amp)
        if self.recipe.ema_decay is not None:
            task.setup_ema(decay=self.recipe.ema_decay)
        if self.recipe.compile:
            task.compile()
        if self.processes.world > 1:
            gpu = self.processes.device.type == "cuda"
            task.prepare_distributed([self.processes.device] if gpu else None)
        return task

    def _add(self, parts: Row) -> None:
        self.sums = {name: self.sums.get(name, 0.0) + value for name, value in parts.items()}

    def _row(self, epoch: int, images: int, seconds: float) -> Row:
        totals = torch.tensor([float(images), *self.sums.values()], dtype=torch.float64)
        count, steps, *values = self.processes.total(totals).tolist()
        names = [name for name in self.sums if name != "steps"]
        return {
            "epoch": epoch + 1,
            "lr": self.optimizer.param_groups[0]["lr"],
            **{name: value / steps for name, value in zip(names, values, strict=True)},
            **self._held_out(),
            "seconds": round(seconds, 3),
            "images_per_second": round(count / seconds, 1),
        }

    def _held_out(self) -> Row:
        if self.processes.world > 1:
            distribute_bn(self.task.get_trainable_module(), self.processes.world, reduce=True)
        parts = (self.selection, self.material, self.transform, self.processes)
        try:
            return held_out_metrics(self.task, *parts)
        except NonFinite as error:
            raise self._diverged(f"on held-out data {error}") from error

    def _select(self) -> None:
        loss = self.history[-1]["held_out_loss"]
        if loss <= self.best_loss:
            self.best_loss = loss
            self.best = self._weights(ema=self.task.has_ema())

    def _weights(self, ema: bool) -> dict[str, Tensor]:
        module = self.task.get_trainable_module(ema=ema)
        backbone = unwrap_model(module.module if ema else module)
        return {k: v.detach().cpu().clone() for k, v in backbone.model.state_dict().items()}

    def _finite(self, weights: dict[str, Tensor]) -> dict[str, Tensor]:
        # an infinite gradient shows in the loss only a step later, and checkpoints are good ones
        if not all(torch.isfinite(each).all() for each in weights.values()):
            raise self._diverged("the weights are not finite")
        return weights

    def _save(self) -> None:
        if self.processes.primary:
            weights = {"model": self._finite(self._weights(ema=False))}
            if self.task.has_ema():
                weights["ema"] = self._weights(ema=True)
            if self.best:
                weights["best"] = self.best
            best = self.best_loss if math.isfinite(self.best_loss) else None
            progress = {"history": self.history, "sums": self.sums}
            state = {"step": self.step, "best_loss": best, **progress}
            self.checkpoints.save(state, weights, self.optimizer.state_dict())
        self.processes.wait()

    def _resume(self) -> None:
        path = self.checkpoints.newest()
        if path is None:
            return
        state, weights, optimizer = self.checkpoints.load(path)
        self.step, self.history = state["step"], state["history"]
        if self.processes.primary:  # the sums of the others were not kept
            self.sums = state["sums"]
        self.best = weights.get("best", {})
        self.best_loss = math.inf if state["best_loss"] is None else state["best_loss"]
        self._load(self.task.get_trainable_module(), weights["model"])
        if self.task.has_ema():
            self._load(self.task.get_trainable_module(ema=True).module, weights["ema"])
        self.optimizer.load_state_dict(optimizer)

    @staticmethod
    def _load(module: nn.Module, weights: dict[str, Tensor]) -> None:
        unwrap_model(module).model.load_state_dict(weights)

    def _total_steps(self) -> int:
        return self.recipe.total_epochs * len(self.batches)

    def _diverged(self, what: str) -> UserError:
        kept = "The last good checkpoint is kept" if self.history else "Nothing was saved yet"
        return UserError(
            f"Training stopped at step {self.step + 1}: {what} (learning rate "
            f"{self.optimizer.param_groups[0]['lr']:g}). Lower the rate, clip gradients "
            f"(clip_grad) or switch amp off. {kept}."
        )
