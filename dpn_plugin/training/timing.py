"""How long training takes here, from a few steps of it."""

import time
from pathlib import Path
from statistics import median
from tempfile import TemporaryDirectory
from typing import NamedTuple

import torch

from dpn_plugin._distributed import Processes
from dpn_plugin._signals import stop_on_signals
from dpn_plugin.runs import EpochRecord, Network, RunRecord, TrainConfig, TrainerState, method_of
from dpn_plugin.training.data import TrainingData
from dpn_plugin.training.monitor import StepMetrics
from dpn_plugin.training.network import create_trainer
from dpn_plugin.training.trainer import Trainer

_SAVES = 3


class TrainingTimes(NamedTuple):
    """
    Seconds of the parts of a training.

    :param step: one step
    :param save: one checkpoint
    """

    step: float
    save: float


class _Enough(Exception):
    """Ends a training that is only timed."""


class _Stopwatch:
    """Notes when steps end, and ends the training when there are enough."""

    def __init__(self, seconds: float) -> None:
        self.until = time.perf_counter() + seconds
        self.last: float | None = None
        self.steps: list[float] = []

    def started(self, steps: int, done: int) -> None: ...

    def stepped(self, images: int, metrics: StepMetrics) -> None:
        now = time.perf_counter()
        if self.last is not None:
            self.steps.append(now - self.last)
        self.last = now
        if now > self.until and self.steps:
            raise _Enough

    def finished_epoch(self, epoch: EpochRecord) -> None:
        self.last = None  # what follows is not a step


def time_training(
    config: TrainConfig,
    network: Network,
    data: TrainingData,
    processes: Processes,
    seconds: float = 1.0,
) -> TrainingTimes:
    """
    Train a network for a moment, in a folder that is removed, and return the times.

    :param config: what would be trained
    :param network: which network of its method
    :param data: the training data
    :param processes: where it would be trained
    :param seconds: for how long, after the first step
    :raises UserError: if the network cannot be created or trained
    """
    record = RunRecord(
        config=config,
        versions={},
        device=str(processes.device),
        processes=1,
        classes=list(data.train.classes),
        input_shape=tuple(data.train.inputs.shape[1:]),
    )
    with TemporaryDirectory() as folder, torch.random.fork_rng():
        method = method_of(config)
        trainer = create_trainer(record, Path(folder), method, network, data, processes)
        watch = _Stopwatch(seconds)
        try:
            with stop_on_signals() as stop:
                trainer.run(watch, stop)
        except _Enough:
            pass
        step = median(watch.steps) if watch.steps else 0.0
        return TrainingTimes(step, _save(trainer))


def _save(trainer: Trainer) -> float:
    module = trainer.task.get_trainable_module()
    weights = {name: each.detach().cpu() for name, each in module.state_dict().items()}
    named, seconds = {"model": weights, "best": weights}, []
    for step in range(_SAVES):
        state = TrainerState(step=step, best_loss=None, history=[], sums={})
        start = time.perf_counter()
        trainer.checkpoints.save(state, named, trainer.optimizer.state_dict())
        seconds.append(time.perf_counter() - start)
    return median(seconds)  # a disk that others use is slow now and then
