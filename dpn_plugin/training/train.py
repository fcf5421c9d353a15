"""From a configuration to a trained run."""

import time
from pathlib import Path

import torch
from torch import nn

from dpn_plugin._distributed import Processes
from dpn_plugin._files import file_hash, json_hash
from dpn_plugin._signals import StopRequest, stop_on_signals
from dpn_plugin.backbones import check_name, mc_dropout
from dpn_plugin.data import DatasetCache
from dpn_plugin.errors import UserError
from dpn_plugin.plugins import registry
from dpn_plugin.runs import (
    CHECKPOINTS,
    HELD_OUT_FILE,
    Checkpoints,
    Method,
    Network,
    NetworkRecord,
    Recipe,
    RunRecord,
    TrainConfig,
    TrainedRun,
    create_network,
    load_or_create_record,
    method_of,
    open_run,
    remove_checkpoints,
    remove_leftovers,
    write_held_out,
    write_history,
    write_run_record,
    write_weights,
)
from dpn_plugin.training.data import TrainingData, load_training_data
from dpn_plugin.training.monitor import SilentMonitor, TrainingMonitor
from dpn_plugin.training.trainer import Trainer


def train(
    config: TrainConfig,
    out: str | Path,
    *,
    root: str | Path = "data",
    base: str | Path | None = None,
    device: str = "auto",
    force: bool = False,
    is_ours: bool = False,
    monitor: TrainingMonitor | None = None,
    data: TrainingData | None = None,
) -> TrainedRun:
    """
    Train all networks of the method, or those that are missing.

    :param config: what to train
    :param out: the run's folder
    :param root: the folder of downloaded data sets
    :param base: where relative paths of sources start; the current folder if ``None``
    :param device: ``"cpu"``, ``"cuda"``, ... or ``"auto"``
    :param force: replace another run that is in the folder
    :param is_ours: the folder is known to be a run folder, though it may hold other files
    :param monitor: receives every step and epoch
    :param data: the training data, if it is loaded already
    :raises UserError: if something does not fit; ``Stopped`` if the user interrupts
    """
    out, processes, method = Path(out), Processes.join(device), method_of(config)
    check_name(config.backbone)
    record = processes.broadcast(
        lambda: load_or_create_record(out, config, processes, force=force, is_ours=is_ours)
    )
    if record.finished and processes.broadcast(lambda: _has_intact_files(out, record)):
        return open_run(out)
    if data is None:
        data = load_training_data(config, method, DatasetCache(root, base or Path()))
    _describe_data(record, data, out)
    with stop_on_signals() as stop:
        for index, network in enumerate(method.networks):
            if network.name not in record.networks:
                trainer = _create_trainer(record, out, method, index, data, processes)
                processes.broadcast(lambda: _take_folder(out, record))
                _train_network(trainer, network, record, out, monitor or SilentMonitor(), stop)
    processes.broadcast(lambda: _finalize(out, record, data, processes))
    return open_run(out)


def _describe_data(record: RunRecord, data: TrainingData, out: Path) -> None:
    """Add the data to the record; refuse to continue with other data than the run started with."""
    fingerprints = data.compute_fingerprints()
    if record.data and record.data != fingerprints:
        raise UserError(
            f"The data is not what the run in {out} started with, though it has the same name. "
            "Use another folder, or restore the data."
        )
    record.data = fingerprints
    record.classes = list(data.train.classes)
    record.input_shape = tuple(data.train.inputs.shape[1:])
    record.samples = {name: len(part) for name, part in data.parts.items()}


def _take_folder(out: Path, record: RunRecord) -> None:
    """Write the record, once everything that a user may have got wrong has been checked."""
    remove_leftovers(out, record)
    write_run_record(out, record)


def _has_intact_files(out: Path, record: RunRecord) -> bool:
    """Whether the files that can be written again without training are there, undamaged."""
    known = record.files
    return all((out / name).is_file() and file_hash(out / name) == known[name] for name in known)


def _finalize(out: Path, record: RunRecord, data: TrainingData, processes: Processes) -> None:
    if not record.files or not _has_intact_files(out, record):
        record.files = write_history(out, record.networks)
    run = TrainedRun(out, record)
    record.files[HELD_OUT_FILE] = write_held_out(run, data.held_out_parts, processes.device)
    remove_checkpoints(out, record.config)
    record.finished = True
    write_run_record(out, record)


def _create_trainer(
    record: RunRecord,
    out: Path,
    method: Method,
    index: int,
    data: TrainingData,
    processes: Processes,
) -> Trainer:
    config, network = record.config, method.networks[index]
    seed = config.seed * 1000 + index  # members of an ensemble differ, and so do runs
    torch.manual_seed(seed)
    backbone = create_network(config, network, record.input_shape, data.num_classes)
    if method.passes > 1:
        with mc_dropout(backbone):
            pass  # a network without dropout is refused now, not after its training
    owner = json_hash([config.identity(), record.code, record.data, network.name])
    return Trainer(
        backbone,
        _create_losses(config.recipe, method, backbone.num_classes),
        data.for_network(network),
        data.create_transform(backbone, own=config.has_given_weights),
        _adapt_recipe(config.recipe, method),
        Checkpoints(out / CHECKPOINTS / network.name, owner),
        processes,
        seed,
    )


def _train_network(
    trainer: Trainer,
    network: Network,
    record: RunRecord,
    out: Path,
    monitor: TrainingMonitor,
    stop: StopRequest,
) -> None:
    start = time.monotonic()
    weights = trainer.run(monitor, stop)

    def save() -> None:
        record.networks[network.name] = NetworkRecord(
            sha256=write_weights(out / f"{network.name}.safetensors", weights),
            seconds=round(time.monotonic() - start, 1),
            history=trainer.history,
        )
        record.transform = trainer.transform
        record.files = write_history(out, record.networks)
        write_run_record(out, record)
        trainer.checkpoints.remove()

    trainer.processes.broadcast(save)


def _create_losses(recipe: Recipe, method: Method, num_classes: int) -> tuple[nn.Module, nn.Module]:
    """Return the objective for training and a second one, with its own state, for selection."""
    options = dict(method.loss_options)
    if method.gamma_option:
        options.setdefault(method.gamma_option, recipe.gamma)
    options |= {"num_classes": num_classes, "reduction": "none"}
    training, selection = (registry.create_loss(method.loss, **options) for _ in range(2))
    return training, selection


def _adapt_recipe(recipe: Recipe, method: Method) -> Recipe:
    if method.adam_only and recipe.optimizer.startswith("sgd"):
        return recipe.model_copy(update={"optimizer": "adam", "lr": 5e-4})
    return recipe
