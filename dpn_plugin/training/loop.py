"""The training of one network, from its newest checkpoint to the end."""

import math
import time
from pathlib import Path
from typing import Protocol

import numpy as np
import torch
from timm.utils import distribute_bn, unwrap_model
from torch import Tensor, nn

from dpn_plugin.backbones import Backbone
from dpn_plugin.data import Augmentation
from dpn_plugin.data.transform import Transform
from dpn_plugin.errors import UserError
from dpn_plugin.training.build import rate_schedule, training_optimizer, training_task
from dpn_plugin.training.checkpoint import Checkpoints
from dpn_plugin.training.held_out import held_out_metrics
from dpn_plugin.training.material import Material
from dpn_plugin.training.paired import PairedBatches
from dpn_plugin.training.processes import Processes
from dpn_plugin.training.recipe import Recipe
from dpn_plugin.training.stopping import StopRequest
from dpn_plugin.training.task import NonFinite

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
    :param checkpoints: where it goes on from, and what it saves
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
        checkpoints: Checkpoints,
        processes: Processes,
        seed: int,
    ) -> None:
        self.recipe, self.processes, self.seed = recipe, processes, seed
        self.material, self.transform = material, transform
        self.criterion, self.selection = (loss.to(processes.device) for loss in losses)
        self.checkpoints = checkpoints
        self.step, self.best_loss = 0, math.inf
        self.history: list[Row] = []
        self.sums: Row = {}  # over the steps of this epoch
        self.best: dict[str, Tensor] = {}
        self.batches = PairedBatches(material, recipe, processes, seed)
        self.task = training_task(backbone, self.criterion, recipe, processes)
        self.optimizer = training_optimizer(self.task, recipe)
        self.scheduler = rate_schedule(self.optimizer, recipe, len(self.batches))

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
        for inputs, labels in self.batches.rest_of(epoch, self.step):
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
        try:
            self._restore(path)
        # it is whole and was still not written by us: whatever comes up, nothing of it is used
        except Exception as error:
            raise UserError(f"{path} is not a checkpoint of this run; remove it.") from error

    def _restore(self, path: Path) -> None:
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
