"""Runs that train in seconds, in this process and in others that can be killed."""

from collections.abc import Callable
from hashlib import sha256
from pathlib import Path
from typing import Any

import torch
from child_processes import FORKSERVER, kill_self, kill_self_in

from dpn_plugin.runs import Recipe, TrainConfig
from dpn_plugin.training import SilentMonitor, StepMetrics, train

FORKSERVER.set_forkserver_preload(
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
    """Return a configuration for the paper's points in the plane: 4 epochs of 4 steps."""
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
    """Return a configuration for digits 0 to 6 against the others: 2 epochs of 5 steps."""
    given = {
        "backbone": backbone,
        "in_domain": {"source": "sklearn:digits", "classes": {"first": 7}, "limit": 180},
        "outliers": {"source": "sklearn:digits", "classes": {"from": 7}, "limit": 80},
        "recipe": Recipe.named("small", epochs=2, batch_size=32, outlier_batch_size=16),
    }
    return points(method, **given | changes)


def weight_hashes(folder: Path) -> dict[str, str]:
    """Return the hash of every safetensors file in a run's folder."""
    return {
        path.name: sha256(path.read_bytes()).hexdigest() for path in folder.glob("*.safetensors")
    }


def leftovers(folder: Path) -> list[str]:
    """Return the files and folders that a finished run should have removed."""
    return [str(path) for path in folder.rglob("*") if path.name.startswith(".") or path.is_dir()]


class CallAtStep(SilentMonitor):
    """A monitor that calls a function after so many steps."""

    def __init__(self, step: int, function: Callable[[], None]) -> None:
        self.step, self.function, self.done = step, function, 0

    def started(self, steps: int, done: int) -> None:
        self.done = done

    def stepped(self, images: int, metrics: StepMetrics) -> None:
        self.done += 1
        if self.done == self.step:
            self.function()


def train_on_one_thread(config: TrainConfig, out: Path) -> None:
    torch.set_num_threads(1)
    train(config, out, device="cpu")


def train_and_die_at_step(config: TrainConfig, out: Path, step: int) -> None:
    torch.set_num_threads(1)
    train(config, out, device="cpu", monitor=CallAtStep(step, kill_self))


def train_and_die_in(config: TrainConfig, out: Path, function: str, call: int) -> None:
    """Die when the function of this full name is called for the ``call``-th time."""
    kill_self_in(function, call)
    train_on_one_thread(config, out)
