"""From a configuration to a trained run."""

import shutil
import time
from pathlib import Path
from typing import Any

import torch
from torch import nn

from dpn_plugin.backbones import mc_dropout
from dpn_plugin.backbones.inputs import check_name
from dpn_plugin.data import Library
from dpn_plugin.errors import UserError
from dpn_plugin.files import file_hash
from dpn_plugin.plugins import registry
from dpn_plugin.sealed import digest
from dpn_plugin.training.checkpoint import Checkpoints, write_weights
from dpn_plugin.training.config import TrainConfig
from dpn_plugin.training.history import write_history
from dpn_plugin.training.loop import Monitor, Trainer
from dpn_plugin.training.material import Material, load_material
from dpn_plugin.training.methods import Method, Network
from dpn_plugin.training.processes import Processes
from dpn_plugin.training.recipe import Recipe
from dpn_plugin.training.record import CHECKPOINTS, known_record, sweep, write_record
from dpn_plugin.training.run import Run, fresh_backbone, method_of, open_run
from dpn_plugin.training.scoring import HELD_OUT, write_held_out
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
    check_name(config.backbone)
    record = processes.from_primary(lambda: known_record(out, config, processes, force))
    if record["finished"] and processes.from_primary(lambda: _is_whole(out, record)):
        return open_run(out)
    if material is None:
        material = load_material(config, method, Library(root, base or Path()))
    _describe(record, material, out)
    with stop_on_signals() as stop:
        for index, network in enumerate(method.networks):
            if network.name not in record["networks"]:
                checkpoints = _checkpoints(out, record, network)
                trainer = _trainer(config, method, network, index, material, checkpoints, processes)
                processes.from_primary(lambda: _claim(out, record))
                _finish(trainer, network, record, out, monitor or Silent(), stop)
    processes.from_primary(lambda: _close(Run(out, config, record), material, processes))
    return open_run(out)


class Silent:
    """A monitor that says nothing."""

    def started(self, steps: int, done: int) -> None: ...

    def stepped(self, images: int, parts: dict[str, float]) -> None: ...

    def finished_epoch(self, row: dict[str, float]) -> None: ...


def _describe(record: dict[str, Any], material: Material, out: Path) -> None:
    """Add the data to the record; refuse to go on with other data than the run began with."""
    described = _description(material)
    if record.get("data", described["data"]) != described["data"]:
        raise UserError(
            f"The data is not what the run in {out} began with, though it has the same name. "
            "Use another folder, or bring back the data."
        )
    record |= described


def _claim(out: Path, record: dict[str, Any]) -> None:
    """The folder is ours from here on: all that a user may have got wrong has been tried."""
    sweep(out, record)
    write_record(out, record)


def _is_whole(out: Path, record: dict[str, Any]) -> bool:
    """Whether all that can be made again without training is there, as it was written."""
    known = record.get("files", {})
    return all((out / name).is_file() and file_hash(out / name) == known[name] for name in known)


def _close(run: Run, material: Material, processes: Processes) -> None:
    record = run.record
    if "files" not in record or not _is_whole(run.folder, record):
        record["files"] = write_history(run.folder, record["networks"])
    record["files"][HELD_OUT] = write_held_out(run, material, processes.device)
    shutil.rmtree(run.folder / CHECKPOINTS, ignore_errors=True)
    record["finished"] = True
    write_record(run.folder, record)


def _checkpoints(out: Path, record: dict[str, Any], network: Network) -> Checkpoints:
    owner = digest([record["config"], record["data"], network.name])
    return Checkpoints(out / CHECKPOINTS / network.name, owner)


def _trainer(
    config: TrainConfig,
    method: Method,
    network: Network,
    index: int,
    material: Material,
    checkpoints: Checkpoints,
    processes: Processes,
) -> Trainer:
    seed = config.seed * 1000 + index  # members of an ensemble differ, runs with other seeds too
    torch.manual_seed(seed)
    shape = tuple(material.train.inputs.shape[1:])
    backbone = fresh_backbone(config, network, shape, material.num_classes)
    if method.passes > 1:
        with mc_dropout(backbone):
            pass  # a network without dropout is refused now, not after its training
    return Trainer(
        backbone,
        _losses(config.recipe, method, material.num_classes),
        material.for_network(network),
        material.transform(backbone),
        _recipe(config.recipe, method),
        checkpoints,
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

    def keep() -> None:
        record["networks"][network.name] = {
            "sha256": write_weights(out / f"{network.name}.safetensors", weights),
            "seconds": round(time.monotonic() - begun, 1),
            "history": trainer.history,
        }
        record["transform"] = trainer.transform.description()
        record["files"] = write_history(out, record["networks"])
        write_record(out, record)
        trainer.checkpoints.remove()

    trainer.processes.from_primary(keep)


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


def _description(material: Material) -> dict[str, Any]:
    return {
        "classes": list(material.train.classes),
        "input_shape": list(material.train.inputs.shape[1:]),
        "samples": {name: len(part) for name, part in vars(material).items() if part is not None},
        "data": material.fingerprints(),
    }
