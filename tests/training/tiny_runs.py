"""Runs of seconds, in this process and in others that can be killed."""

import multiprocessing
import os
import signal
import sys
from collections.abc import Callable
from hashlib import sha256
from pathlib import Path
from typing import Any

import torch

from dpn_plugin.training import Recipe, TrainConfig, train

#: one interpreter that has imported all and is forked: a child starts in milliseconds
FORKS = multiprocessing.get_context("forkserver")
FORKS.set_forkserver_preload(
    [
        "dpn_plugin.training",
        "dpn_plugin.cli.train",
        "matplotlib.backends.backend_agg",
        "matplotlib.figure",
        "pytorch_ood.loss",
        "sklearn.datasets",
    ]
)


def points(method: str = "dpn-minus", *, seed: int = 0, **changes: Any) -> TrainConfig:
    """The paper's points in the plane; 4 epochs of 4 steps."""
    fields = {key: changes.pop(key) for key in list(changes) if key in TrainConfig.model_fields}
    settings = {"epochs": 4, "batch_size": 32, "outlier_batch_size": 16, **changes}
    return TrainConfig(
        **{
            "backbone": "mlp_synthetic",
            "method": method,
            "in_domain": {"source": "synthetic:gaussians", "limit": 150},
            "outliers": {"source": "synthetic:gaussians-ood", "limit": 80},
            "recipe": Recipe.named("synthetic", **settings),
            "seed": seed,
            **fields,
        }
    )


def digits(method: str = "dpn-minus", backbone: str = "test_resnet", **changes: Any) -> TrainConfig:
    """Digits 0 to 6 against the others; 2 epochs of 5 steps."""
    given = {
        "backbone": backbone,
        "in_domain": {"source": "sklearn:digits", "classes": {"first": 7}, "limit": 180},
        "outliers": {"source": "sklearn:digits", "classes": {"from": 7}, "limit": 80},
        "recipe": Recipe.named("small", epochs=2, batch_size=32, outlier_batch_size=16),
    }
    return points(method, **given | changes)


def weights(folder: Path) -> dict[str, str]:
    """The hash of every file of tensors in a run's folder."""
    return {
        path.name: sha256(path.read_bytes()).hexdigest() for path in folder.glob("*.safetensors")
    }


def leftovers(folder: Path) -> list[str]:
    """What a run should have cleared away."""
    return [str(path) for path in folder.rglob("*") if path.name.startswith(".") or path.is_dir()]


class At:
    """A monitor that calls ``act`` after so many steps."""

    def __init__(self, step: int, act: Callable[[], None]) -> None:
        self.step, self.act, self.done = step, act, 0

    def started(self, steps: int, done: int) -> None:
        self.done = done

    def stepped(self, images: int, parts: dict[str, float]) -> None:
        self.done += 1
        if self.done == self.step:
            self.act()

    def finished_epoch(self, row: dict[str, float]) -> None: ...


def die() -> None:
    """End this process as ``kill -9`` does."""
    os.kill(os.getpid(), signal.SIGKILL)


def in_child(target: Callable[..., None], *arguments: Any) -> int:
    """:return: the exit code of ``target`` in a process of its own; below 0 is a signal"""
    child = FORKS.Process(target=target, args=arguments)
    child.start()
    child.join(120)
    assert child.exitcode is not None
    return child.exitcode


def train_quietly(config: TrainConfig, out: Path) -> None:
    torch.set_num_threads(1)
    train(config, out, device="cpu")


def train_and_die_at_step(config: TrainConfig, out: Path, step: int) -> None:
    torch.set_num_threads(1)
    train(config, out, device="cpu", monitor=At(step, die))


def train_and_die_in(config: TrainConfig, out: Path, place: str, call: int) -> None:
    """Die when the function at ``place`` is called for the ``call``-th time."""
    torch.set_num_threads(1)
    module, _, name = place.rpartition(".")
    holder = sys.modules[module]
    original, calls = getattr(holder, name), []

    def dying(*arguments: Any, **keywords: Any) -> Any:
        calls.append(name)
        if len(calls) == call:
            die()
        return original(*arguments, **keywords)

    setattr(holder, name, dying)
    train(config, out, device="cpu")
