"""From a configuration to a trained run."""

import time
from pathlib import Path
from typing import Any

import torch
from torch import nn

from dpn_plugin.plugins import registry
from dpn_plugin.training.checkpoint import write_weights
from dpn_plugin.training.config import TrainConfig
from dpn_plugin.training.history import write_history
from dpn_plugin.training.loop import Monitor, Trainer
from dpn_plugin.training.material import Material, load_material
from dpn_plugin.training.methods import Method, Network
from dpn_plugin.training.processes import Processes
from dpn_plugin.training.recipe import Recipe
from dpn_plugin.training.run import (
    Run,
    claimed_record,
    fresh_backbone,
    method_of,
    open_run,
    write_record,
)
from dpn_plugin.training.stopping import StopRequest, stop_on_signals

__all__ = ["Silent", "train"]


def train(
    config: TrainConfig,
    out: str | Path,
    *,
    root: str | Path = "data",
    base: Path | None = None,
    device: str = "auto",
    force: bool = False,
    monitor: Monitor | None = None,
    material: Material | None = None,
) -> Run:
    """
    Train all networks of the method, or what is missing of them.

    :param config: what to train
    :param out: the run's folder
    :param root: the folder of downloaded data sets
    :param base: where relative paths of sources start; the current folder if ``None``
    :param device: ``"cpu"``, ``"cuda"``, ... or ``"auto"``
    :param force: throw away another run that is in the folder
    :param monitor: is told of every step and epoch
    :param material: the data, if it is loaded already
    :raises UserError: if something does not fit; ``Stopped`` if the user interrupts
    """
    out, processes, method = Path(out), Processes.join(device), method_of(config)
    record = claimed_record(out, config, processes, force)
    if record.get("finished"):
        return open_run(out)
    if material is None:
        material = load_material(config, method, Path(root), base)
    record |= _described(material)
    with stop_on_signals() as stop:
        for index, network in enumerate(method.networks):
            if network.name not in record["networks"]:
                trainer = _trainer(config, method, network, index, material, out, processes)
                _finish(trainer, network, record, out, monitor or Silent(), stop)
    record["finished"] = True
    write_record(out, record, processes)
    return open_run(out)


class Silent:
    """A monitor that says nothing."""

    def started(self, steps: int, done: int) -> None: ...

    def stepped(self, images: int, parts: dict[str, float]) -> None: ...

    def finished_epoch(self, row: dict[str, float]) -> None: ...


def _trainer(
    config: TrainConfig,
    method: Method,
    network: Network,
    index: int,
    material: Material,
    out: Path,
    processes: Processes,
) -> Trainer:
    seed = config.seed * 1000 + index  # members of an ensemble differ, runs with other seeds too
    torch.manual_seed(seed)
    shape = tuple(material.train.inputs.shape[1:])
    backbone = fresh_backbone(config, network, shape, material.num_classes)
    return Trainer(
        backbone,
        _losses(config.recipe, method, material.num_classes),
        material.for_network(network),
        material.transform(backbone),
        _recipe(config.recipe, method),
        out / "checkpoints" / network.name,
        processes,
        seed,
    )


def _finish(
    trainer: Trainer,
    network: Network,
    record: dict[str, Any],
    out: Path,
    monitor: Monitor,
    stop: StopRequest,
) -> None:
    begun = time.monotonic()
    weights = trainer.run(monitor, stop)
    if trainer.processes.primary:
        record["networks"][network.name] = {
            "sha256": write_weights(out / f"{network.name}.safetensors", weights),
            "seconds": round(time.monotonic() - begun, 1),
            "history": trainer.history,
        }
        record["transform"] = trainer.transform.description()
        write_record(out, record, trainer.processes)
        write_history(out, record["networks"])
        trainer.checkpoints.remove()
    trainer.processes.wait()


def _losses(recipe: Recipe, method: Method, num_classes: int) -> tuple[nn.Module, nn.Module]:
    """:return: the objective for training and, apart from its state, for selection"""
    options = dict(method.loss_options)
    if method.gamma_option:
        options.setdefault(method.gamma_option, recipe.gamma)
    options |= {"num_classes": num_classes, "reduction": "none"}
    training, selection = (registry.create_loss(method.loss, **options) for _ in range(2))
    return training, selection


def _recipe(recipe: Recipe, method: Method) -> Recipe:
    if method.adam_only and recipe.optimizer.startswith("sgd"):
        return recipe.model_copy(update={"optimizer": "adam", "lr": 5e-4})
    return recipe


def _described(material: Material) -> dict[str, Any]:
    return {
        "classes": list(material.train.classes),
        "input_shape": list(material.train.inputs.shape[1:]),
        "samples": {name: len(part) for name, part in vars(material).items() if part is not None},
        "data": material.fingerprints(),
    }
