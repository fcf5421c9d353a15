"""From a configuration to a trained run."""

import logging
import time
from collections.abc import Iterable
from functools import partial
from pathlib import Path

import torch
from torch import nn

from dpn_plugin._distributed import Processes
from dpn_plugin._files import file_hash, json_hash
from dpn_plugin._signals import StopRequest, stop_on_signals
from dpn_plugin.backbones import Backbone, check_name, describe_resizing, mc_dropout
from dpn_plugin.data import DatasetCache, Transform
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
    adapted_recipe,
    create_network,
    find_trained_network,
    head_of,
    is_frozen,
    load_as_it_is,
    load_base,
    load_or_create_record,
    loss_options,
    method_of,
    network_identity,
    open_run,
    read_run_record,
    read_weights,
    remove_checkpoints,
    remove_leftovers,
    write_held_out,
    write_history,
    write_run_record,
    write_weights,
)
from dpn_plugin.training.data import TrainingData, load_in_domain, load_training_data
from dpn_plugin.training.monitor import SilentMonitor, TrainingMonitor
from dpn_plugin.training.trainer import Trainer

_log = logging.getLogger(__name__)


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
    siblings: Iterable[Path] = (),
) -> TrainedRun:
    """
    Train all networks of the method, or those that are missing.

    A network that another run has trained with an equal configuration is copied from there.

    :param config: what to train
    :param out: the run's folder
    :param root: the folder of downloaded data sets
    :param base: where relative paths of sources start; the current folder if ``None``
    :param device: ``"cpu"``, ``"cuda"``, ... or ``"auto"``
    :param force: replace another run that is in the folder
    :param is_ours: the folder is known to be a run folder, though it may hold other files
    :param monitor: receives every step and epoch
    :param data: the training data, if it is loaded already
    :param siblings: folders of runs whose networks may be copied
    :raises UserError: if something does not fit; ``Stopped`` if the user interrupts
    """
    out, processes, method = Path(out), Processes.join(device), method_of(config)
    check_name(config.backbone)
    record = processes.broadcast(
        lambda: load_or_create_record(out, config, processes, force=force, is_ours=is_ours)
    )
    if record.finished and processes.broadcast(lambda: _has_intact_files(out, record)):
        processes.broadcast(lambda: _update_path(out, record))
        return open_run(out)
    if data is None:
        data = _load_data(config, method, DatasetCache(root, base or Path()), processes)
    _describe_data(record, data, out)
    if data.features is not None and not record.base:
        frozen = load_base(config, record.input_shape)
        record.base, record.transform = frozen.sha256, frozen.transform
    if processes.primary:
        _log_resizing(config, record.input_shape)
    with stop_on_signals() as stop:
        for network in method.trained_networks:
            if network.name in record.networks:
                continue
            if not network.is_trained:
                _keep_as_it_is(record, out, network, data, processes)
            else:
                trainer = _create_trainer(record, out, method, network, data, processes)
                processes.broadcast(lambda: _take_folder(out, record))
                if not _copy_network(trainer, network, record, out, siblings):
                    _train_network(trainer, network, record, out, monitor or SilentMonitor(), stop)
    processes.broadcast(lambda: _finalize(out, record, data, processes))
    return open_run(out)


def _update_path(out: Path, record: RunRecord) -> None:
    """Record where the weights below a head are, if they have moved since."""
    known = read_run_record(out)
    if record.base and known is not None and known.config != record.config:
        write_run_record(out, record)


def _load_data(
    config: TrainConfig, method: Method, datasets: DatasetCache, processes: Processes
) -> TrainingData:
    """Load the training data; for a frozen network, with features that are kept in memory."""
    if not is_frozen(config):
        return load_training_data(config, method, datasets)
    samples, _ = load_in_domain(config, datasets)
    base = load_base(config, tuple(samples.inputs.shape[1:]))
    featurize = partial(base.as_points, device=processes.device)
    return load_training_data(config, method, datasets, featurize)


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


def _log_resizing(config: TrainConfig, shape: tuple[int, ...]) -> None:
    if len(shape) == 3 and (cost := describe_resizing(config.backbone, shape[1], config.stem)):
        _log.info(cost)


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
    features = None if data.features is None else data.features.held_out_parts
    held_out = write_held_out(run, data.held_out_parts, processes.device, features)
    record.files[HELD_OUT_FILE] = held_out
    remove_checkpoints(out, record.config)
    record.finished = True
    write_run_record(out, record)


def _create_trainer(
    record: RunRecord,
    out: Path,
    method: Method,
    network: Network,
    data: TrainingData,
    processes: Processes,
) -> Trainer:
    config = record.config
    seed = config.seed * 1000 + network.seed_offset
    torch.manual_seed(seed)
    points = data.features
    if points is None:
        backbone = create_network(config, network, record.input_shape, data.num_classes)
    else:
        backbone = head_of(config, network, points.train.inputs.shape[1], data.num_classes)
    if network.starts_from is not None:
        _load_start(backbone, out, record, network.starts_from, processes)
    if method.passes > 1:
        with mc_dropout(backbone):
            pass  # a network without dropout is refused now, not after its training
    owner = json_hash([config.identity(), record.code, record.data, network.name])
    return Trainer(
        backbone,
        _create_losses(config.recipe, network, backbone.num_classes),
        (points or data).for_network(network),
        # features are used as they are
        data.create_transform(backbone, own=config.has_given_weights)
        if points is None
        else Transform((), ()),
        adapted_recipe(config.recipe, network),
        Checkpoints(out / CHECKPOINTS / network.name, owner),
        processes,
        seed,
    )


def _keep_as_it_is(
    record: RunRecord, out: Path, network: Network, data: TrainingData, processes: Processes
) -> None:
    """Write the network with the weights that are given, without training it."""
    start, classes = time.monotonic(), data.train.classes
    backbone = load_as_it_is(record.config, network, record.input_shape, classes)
    transform = data.create_transform(backbone, own=True)

    def save() -> None:
        _take_folder(out, record)
        network_record = NetworkRecord(
            sha256=write_weights(out / f"{network.name}.safetensors", backbone.model.state_dict()),
            identity=network_identity(record.config, network),
            seconds=round(time.monotonic() - start, 1),
            history=[],
        )
        _add_network(network, network_record, transform, record, out)

    processes.broadcast(save)


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
        network_record = NetworkRecord(
            sha256=write_weights(out / f"{network.name}.safetensors", weights),
            identity=network_identity(record.config, network),
            seconds=round(time.monotonic() - start, 1),
            history=trainer.history,
        )
        _add_network(network, network_record, trainer.transform, record, out)
        trainer.checkpoints.remove()

    trainer.processes.broadcast(save)


def _copy_network(
    trainer: Trainer, network: Network, record: RunRecord, out: Path, siblings: Iterable[Path]
) -> bool:
    """Copy an equal network that another run has trained, and return whether there is one."""

    def copy() -> bool:
        identity = network_identity(record.config, network)
        parts = {name: record.data[name] for name in trainer.data.parts}
        found = find_trained_network((each for each in siblings if each != out), identity, parts)
        if found is None:
            return False
        weights = read_weights(found.path, found.record.sha256)
        sha256 = write_weights(out / f"{network.name}.safetensors", weights)
        source = found.record.shared_from or "/".join(found.path.parts[-4:-1])
        changes = {"sha256": sha256, "shared_from": source, "seconds": 0.0}
        network_record = found.record.model_copy(update=changes)
        _add_network(network, network_record, trainer.transform, record, out)
        trainer.checkpoints.remove()
        return True

    return trainer.processes.broadcast(copy)


def _add_network(
    network: Network, found: NetworkRecord, transform: Transform, record: RunRecord, out: Path
) -> None:
    record.networks[network.name] = found
    if not record.base:  # a head takes features; the record has the transform of images
        record.transform = transform
    record.files = write_history(out, record.networks)
    write_run_record(out, record)


def _load_start(
    backbone: Backbone, out: Path, record: RunRecord, name: str, processes: Processes
) -> None:
    """Load the weights of another network of the run, which was trained before."""
    # only the primary process adds networks to the record
    sha256 = processes.broadcast(lambda: record.networks[name].sha256)
    weights = read_weights(out / f"{name}.safetensors", sha256)
    backbone.model.load_state_dict(weights)


def _create_losses(
    recipe: Recipe, network: Network, num_classes: int
) -> tuple[nn.Module, nn.Module]:
    """Return the objective for training and a second one, with its own state, for selection."""
    options = loss_options(recipe, network) | {"num_classes": num_classes, "reduction": "none"}
    training, selection = (registry.create_loss(network.loss, **options) for _ in range(2))
    return training, selection
