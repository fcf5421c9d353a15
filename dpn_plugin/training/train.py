"""From a configuration to a trained run."""

import logging
from collections.abc import Iterable
from dataclasses import replace
from functools import partial
from pathlib import Path

from dpn_plugin._distributed import Processes
from dpn_plugin._files import file_hash
from dpn_plugin._signals import stop_on_signals
from dpn_plugin.backbones import check_name, describe_resizing
from dpn_plugin.data import DatasetCache, StorageOptions
from dpn_plugin.errors import UserError
from dpn_plugin.runs import (
    CACHE,
    HELD_OUT_FILE,
    Method,
    RunRecord,
    TrainConfig,
    TrainedRun,
    is_frozen,
    load_base,
    load_or_create_record,
    method_of,
    open_run,
    read_run_record,
    remove_cache,
    remove_checkpoints,
    write_held_out,
    write_history,
    write_run_record,
)
from dpn_plugin.training.data import TrainingData, load_in_domain, load_training_data
from dpn_plugin.training.monitor import SilentMonitor, TrainingMonitor
from dpn_plugin.training.network import (
    check_networks,
    copy_network,
    create_trainer,
    keep_as_it_is,
    take_folder,
    train_network,
)

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
    storage: StorageOptions | None = None,
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
    :param storage: how images are kept otherwise; large sets that fit are decoded into a folder
        ``cache`` of the run, which is removed at the end
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
        storage = replace(storage or StorageOptions(), folder=out / CACHE)
        datasets = DatasetCache(root, base or Path(), storage)
        data = _load_data(config, method, datasets, processes)
    _describe_data(record, data, out)
    if data.features is not None and not record.base:
        frozen = load_base(config, record.input_shape)
        record.base, record.transform = frozen.sha256, frozen.transform
    if processes.primary:
        _log_resizing(config, record.input_shape)
    check_networks(record, method, data)
    with stop_on_signals() as stop:
        for network in method.trained_networks:
            if network.name in record.networks:
                continue
            if not network.is_trained:
                keep_as_it_is(record, out, network, data, processes)
            else:
                trainer = create_trainer(record, out, method, network, data, processes)
                processes.broadcast(lambda: take_folder(out, record))
                if not copy_network(trainer, network, record, out, siblings):
                    train_network(trainer, network, record, out, monitor or SilentMonitor(), stop)
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
    remove_cache(out)
    record.finished = True
    write_run_record(out, record)
