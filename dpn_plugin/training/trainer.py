"""The training of one network, from its newest checkpoint to the end."""

import math
import time
from collections.abc import Sequence
from pathlib import Path

import torch
from timm.utils import distribute_bn, unwrap_model
from torch import Tensor, nn

from dpn_plugin._distributed import Processes
from dpn_plugin._signals import StopRequest
from dpn_plugin.backbones import Backbone
from dpn_plugin.data import Mixing, Transform
from dpn_plugin.errors import UserError
from dpn_plugin.runs import Checkpoints, EpochRecord, Recipe, TrainerState
from dpn_plugin.training.data import TrainingData
from dpn_plugin.training.monitor import StepMetrics, TrainingMonitor
from dpn_plugin.training.optimization import create_optimizer, create_schedule, set_rate
from dpn_plugin.training.paired_batches import PairedBatches
from dpn_plugin.training.seeds import StepSeeds, seed_torch
from dpn_plugin.training.task import (
    NonFinite,
    create_task,
    freeze_all_but_head,
    held_out_metrics,
)

#: what is summed over the steps of an epoch
_SUMS = ("steps", *StepMetrics._fields)


class Trainer:
    """
    Trains one network.

    Every step depends only on the weights, the optimizer's state, the seed and the number of the
    step, so a run that was stopped and continued ends with the same weights as one that was not.

    :param backbone: the network, freshly initialised
    :param losses: the objective for training and the one for selection, with ``reduction="none"``
    :param data: the training data, with this network's labels
    :param transform: what brings a batch to the network
    :param recipe: how to train
    :param checkpoints: where it continues from, and where it saves
    :param processes: this process and the others
    :param seed: of order, augmentation, mixing and dropout
    :param teachers: trained networks whose logits the objective takes too, in evaluation mode
    :param mixing: mixes the samples of a batch, after their augmentation
    """

    def __init__(
        self,
        backbone: Backbone,
        losses: tuple[nn.Module, nn.Module],
        data: TrainingData,
        transform: Transform,
        recipe: Recipe,
        checkpoints: Checkpoints,
        processes: Processes,
        seed: int,
        teachers: Sequence[Backbone] = (),
        mixing: Mixing | None = None,
    ) -> None:
        self.mixing = mixing
        self.recipe, self.processes = recipe, processes
        self.data, self.transform = data, transform
        self.criterion, self.selection = (loss.to(processes.device) for loss in losses)
        self.checkpoints = checkpoints
        self.step, self.best_loss = 0, math.inf
        self.history: list[EpochRecord] = []
        self.sums: dict[str, float] = {}  # over the steps of this epoch
        self.best: dict[str, Tensor] = {}
        self.batches = PairedBatches(data, recipe, processes, seed)
        teachers = [each.to(processes.device) for each in teachers]
        self.task = create_task(backbone, self.criterion, recipe, processes, teachers)
        self.clipped = list(self.task.get_clip_parameters())
        self.seeds = StepSeeds(seed, processes.rank)
        self.optimizer = create_optimizer(self.task, recipe)
        self.scheduler = create_schedule(self.optimizer, recipe, len(self.batches))

    def run(self, monitor: TrainingMonitor, stop: StopRequest) -> dict[str, Tensor]:
        """
        Train to the end and return the weights with the lowest held-out loss.

        :param monitor: receives every step and epoch
        :param stop: checked after every step
        :raises Stopped: after a checkpoint, if a stop was requested
        :raises UserError: if the loss is not finite, or a file cannot be written
        """
        self._resume()
        monitor.started(self._total_steps(), self.step)
        for epoch in range(self.step // len(self.batches), self.recipe.total_epochs):
            self._train_epoch(epoch, monitor, stop)
            monitor.finished_epoch(self.history[-1])
        return self.best

    def _train_epoch(self, epoch: int, monitor: TrainingMonitor, stop: StopRequest) -> None:
        start, images = time.monotonic(), 0
        self._begin_epoch(epoch)
        for inputs, labels in self.batches.rest_of(epoch, self.step):
            metrics = self._train_step(inputs, labels, epoch)
            self.step += 1
            images += len(labels)
            self._add_to_sums(metrics)
            monitor.stepped(len(labels) * self.processes.world, metrics)
            done = self.step % len(self.batches) == 0
            if self.processes.any(stop.requested) and not done:
                self._save()
                stop.stop(f"after step {self.step} of {self._total_steps()}")
        self.history.append(self._epoch_record(epoch, images, time.monotonic() - start))
        self.sums = {}
        self._select()
        stopping = self.processes.any(stop.requested) and self.step < self._total_steps()
        if stopping or self.processes.any(self.checkpoints.is_due()):
            self._save()
        if stopping:
            stop.stop(f"after epoch {epoch + 1} of {self.recipe.total_epochs}")

    def _train_step(self, inputs: Tensor, labels: Tensor, epoch: int) -> StepMetrics:
        seed = self.seeds.of(self.step)
        seed_torch(seed, self.processes.device)
        set_rate(self.optimizer, self.scheduler, self.recipe, epoch, self.step)
        inputs, labels = (each.to(self.processes.device) for each in (inputs, labels))
        inputs, soft = self._augment_and_mix(inputs, labels, epoch, seed)
        x = self.transform(inputs)
        if self.recipe.channels_last and x.ndim == 4:
            x = x.contiguous(memory_format=torch.channels_last)
        try:
            result = self.task(x, labels, soft)
        except NonFinite as error:
            raise self._diverged(str(error)) from error
        self.optimizer.zero_grad(set_to_none=True)
        result["loss"].backward()
        if self.recipe.clip_grad is not None:
            nn.utils.clip_grad_norm_(self.clipped, self.recipe.clip_grad)
        self.optimizer.step()
        self.task.update_ema(step=self.step)
        loss, loss_in, loss_out = _floats(*(result[n] for n in ("loss", "loss_in", "loss_out")))
        accuracy = int(result["correct"]) / max(1, result["in_domain"])
        return StepMetrics(loss, loss_in, loss_out, accuracy)

    def _begin_epoch(self, epoch: int) -> None:
        self.task.train()
        if self.recipe.freeze_epochs:
            freeze_all_but_head(self.task, frozen=epoch < self.recipe.freeze_epochs)
        set_epoch = getattr(self.criterion, "set_epoch", None)
        if callable(set_epoch):
            set_epoch(epoch)

    def _augment_and_mix(
        self, inputs: Tensor, labels: Tensor, epoch: int, seed: int
    ) -> tuple[Tensor, Tensor | None]:
        """Return the inputs that are trained on, and soft targets if inputs are mixed."""
        if inputs.ndim != 4 and self.mixing is None:
            return inputs, None  # features are used as they are, and need no generator
        generator = torch.Generator().manual_seed(seed)
        if inputs.ndim == 4:
            inputs = self._augment(inputs, epoch, generator)
        if self.mixing is None:
            return inputs, None
        return self.mixing(inputs, labels, self.data.num_classes, generator)

    def _augment(self, inputs: Tensor, epoch: int, generator: torch.Generator) -> Tensor:
        phase = self.recipe.fine_tune if epoch >= self.recipe.epochs else None
        augmentation = (phase or self.recipe).augmentation
        of_outliers = self.recipe.outlier_augmentation
        if of_outliers is None or not self.batches.outliers:
            return augmentation(inputs, generator)
        # by position: the labels of an in-domain/OOD classifier do not show which are outliers
        count = self.batches.in_domain_size
        in_domain = augmentation(inputs[:count], generator)
        return torch.cat([in_domain, of_outliers(inputs[count:], generator)])

    def _add_to_sums(self, metrics: StepMetrics) -> None:
        for name, value in zip(_SUMS, (1.0, *metrics), strict=True):
            self.sums[name] = self.sums.get(name, 0.0) + value

    def _epoch_record(self, epoch: int, images: int, seconds: float) -> EpochRecord:
        totals = torch.tensor([float(images), *self.sums.values()], dtype=torch.float64)
        count, steps, *values = self.processes.all_reduce_sum(totals).tolist()
        means = [value / steps for value in values]
        return EpochRecord(
            epoch=epoch + 1,
            lr=self.optimizer.param_groups[0]["lr"],
            **StepMetrics(*means)._asdict(),
            **self._evaluate_held_out(),
            seconds=round(seconds, 3),
            images_per_second=round(count / seconds, 1),
        )

    def _evaluate_held_out(self) -> dict[str, float]:
        if self.processes.world > 1:
            distribute_bn(self.task.get_trainable_module(), self.processes.world, reduce=True)
        arguments = (self.selection, self.data, self.transform, self.processes)
        try:
            return held_out_metrics(self.task, *arguments)
        except NonFinite as error:
            raise self._diverged(f"on held-out data {error}") from error

    def _select(self) -> None:
        loss = self.history[-1].held_out_loss
        if loss <= self.best_loss:
            self.best_loss = loss
            self.best = self._weights(ema=self.task.has_ema())

    def _weights(self, ema: bool) -> dict[str, Tensor]:
        module = self.task.get_trainable_module(ema=ema)
        backbone = unwrap_model(module.module if ema else module)
        return {k: v.detach().cpu().clone() for k, v in backbone.model.state_dict().items()}

    def _check_finite(self, weights: dict[str, Tensor]) -> dict[str, Tensor]:
        # an infinite gradient shows in the loss only a step later, after the checkpoint
        if not all(torch.isfinite(each).all() for each in weights.values()):
            raise self._diverged("the weights are not finite")
        return weights

    def _save(self) -> None:
        if self.processes.primary:
            weights = {"model": self._check_finite(self._weights(ema=False))}
            if self.task.has_ema():
                weights["ema"] = self._weights(ema=True)
            if self.best:
                weights["best"] = self.best
            if of_loss := self.criterion.state_dict():
                weights["loss"] = of_loss
            state = TrainerState(
                step=self.step,
                best_loss=self.best_loss if math.isfinite(self.best_loss) else None,
                history=self.history,
                sums=self.sums,
            )
            self.checkpoints.save(state, weights, self.optimizer.state_dict())
        self.processes.barrier()

    def _resume(self) -> None:
        path = self.checkpoints.find_newest()
        if path is None:
            return
        try:
            self._restore(path)
        # its hashes match, but it was not written by this trainer: any error may occur
        except Exception as error:
            raise UserError(f"{path} is not a checkpoint of this run; remove it.") from error

    def _restore(self, path: Path) -> None:
        state, weights, optimizer = self.checkpoints.load(path)
        self.step, self.history = state.step, state.history
        if self.processes.primary:  # the sums of the other processes were not saved
            self.sums = state.sums
        self.best = weights.get("best", {})
        self.best_loss = math.inf if state.best_loss is None else state.best_loss
        self._load(self.task.get_trainable_module(), weights["model"])
        if self.task.has_ema():
            self._load(self.task.get_trainable_module(ema=True).module, weights["ema"])
        self.criterion.load_state_dict(weights.get("loss", {}))
        self.optimizer.load_state_dict(optimizer)

    @staticmethod
    def _load(module: nn.Module, weights: dict[str, Tensor]) -> None:
        unwrap_model(module).model.load_state_dict(weights)

    def _total_steps(self) -> int:
        return self.recipe.total_epochs * len(self.batches)

    def _diverged(self, what: str) -> UserError:
        saved = self.checkpoints.find_newest() is not None
        kept = "The last good checkpoint is kept" if saved else "Nothing was saved yet"
        return UserError(
            f"Training stopped at step {self.step + 1}: {what} (learning rate "
            f"{self.optimizer.param_groups[0]['lr']:g}). Lower the rate, clip gradients "
            f"(clip_grad) or switch amp off. {kept}."
        )


def _floats(*values: Tensor) -> list[float]:
    if values[0].device.type == "cpu":
        return [value.item() for value in values]
    return torch.stack(values).tolist()  # one transfer from a GPU
