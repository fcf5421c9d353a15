"""How one network of a run comes about: trained, copied from another run, or kept as it is."""

import time
import warnings
from collections.abc import Iterable
from pathlib import Path

import torch
from torch import nn

from dpn_plugin._distributed import Processes
from dpn_plugin._records import json_hash
from dpn_plugin._signals import StopRequest
from dpn_plugin.backbones import BRANCH, Backbone, mc_dropout
from dpn_plugin.data import MIXINGS, Transform
from dpn_plugin.errors import UserError
from dpn_plugin.losses import FeatureLoss
from dpn_plugin.plugins import registry
from dpn_plugin.runs import (
    CHECKPOINTS,
    Checkpoints,
    Method,
    Network,
    NetworkRecord,
    Recipe,
    RunRecord,
    adapted_recipe,
    check_options,
    create_network,
    find_trained_network,
    head_of,
    load_as_it_is,
    loss_options,
    method_of,
    network_identity,
    read_weights,
    reads_features,
    remove_leftovers,
    why_not_mixed,
    write_history,
    write_run_record,
    write_weights,
)
from dpn_plugin.training.data import TrainingData
from dpn_plugin.training.monitor import TrainingMonitor
from dpn_plugin.training.trainer import Trainer

#: seconds between two checkpoints of a head, whose epochs take less than a tenth of a second
_BETWEEN = 2.0


def take_folder(out: Path, record: RunRecord) -> None:
    """Write the record, once everything that a user may have got wrong has been checked."""
    remove_leftovers(out, record)
    write_run_record(out, record)


def create_trainer(
    record: RunRecord,
    out: Path,
    method: Method,
    network: Network,
    data: TrainingData,
    processes: Processes,
) -> Trainer:
    """
    Return the trainer of one network, with its first weights.

    :param record: of the run, with its data
    :param out: the folder of the run
    :param method: whose network it is
    :param network: the network
    :param data: the training data of the run
    :param processes: this process and the others that train it
    :raises UserError: if the network cannot be created, or has no dropout that the method needs
    """
    config = record.config
    seed = config.seed * 1000 + network.seed_offset
    torch.manual_seed(seed)
    points = data.features
    backbone = _untrained(record, network, data)
    if network.starts_from is not None:
        _load_start(backbone, out, record, network.starts_from, processes)
    if method.passes > 1:
        with mc_dropout(backbone):
            pass  # a network without dropout is refused now, not after its training
    owner = json_hash([config.identity(), record.code, record.data, network.name])
    return Trainer(
        backbone,
        _create_losses(config.recipe, network, backbone, data.num_classes),
        (points or data).for_network(network),
        # features are used as they are
        data.create_transform(backbone, own=config.has_given_weights)
        if points is None
        else Transform((), ()),
        adapted_recipe(config.recipe, network),
        Checkpoints(out / CHECKPOINTS / network.name, owner, 0.0 if points is None else _BETWEEN),
        processes,
        seed,
        [_load_teacher(out, record, name, data, processes) for name in network.distils],
        None if network.mixing is None else MIXINGS[network.mixing](**network.mixing_options),
    )


def check_networks(record: RunRecord, method: Method, data: TrainingData) -> None:
    """
    Check that all networks of a method can be trained on the data, before the first one is.

    :param record: of the run, with its data
    :param method: the method
    :param data: the training data of the run
    :raises UserError: if samples cannot be mixed, or a loss does not fit the backbone
    """
    check_options(record.config)
    kind = "images" if len(record.input_shape) == 3 else "points"
    if why := why_not_mixed(method, kind if data.features is None else "features"):
        raise UserError(why)
    for network in method.trained_networks:
        if network.starts_from and reads_features(network) and data.features is None:
            # otherwise it would be created only after the training of the one it starts from
            create_network(record.config, network, record.input_shape, data.num_classes)


def keep_as_it_is(
    record: RunRecord, out: Path, network: Network, data: TrainingData, processes: Processes
) -> None:
    """Write the network with the weights that are given, without training it."""
    start, classes = time.monotonic(), data.train.classes
    backbone = load_as_it_is(record.config, network, record.input_shape, classes)
    transform = data.create_transform(backbone, own=True)

    def save() -> None:
        take_folder(out, record)
        network_record = NetworkRecord(
            sha256=write_weights(out / f"{network.name}.safetensors", backbone.model.state_dict()),
            identity=network_identity(record.config, network),
            seconds=round(time.monotonic() - start, 1),
            history=[],
        )
        _add_network(network, network_record, transform, record, out)

    processes.broadcast(save)


def train_network(
    trainer: Trainer,
    network: Network,
    record: RunRecord,
    out: Path,
    monitor: TrainingMonitor,
    stop: StopRequest,
) -> None:
    """Train a network to its end and add it to the run."""
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


def copy_network(
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


def _untrained(record: RunRecord, network: Network, data: TrainingData) -> Backbone:
    """Return a network, or a head on features, with its first weights."""
    if data.features is None:
        return create_network(record.config, network, record.input_shape, data.num_classes)
    width = data.features.train.inputs.shape[1]
    return head_of(record.config, network, width, data.num_classes)


def _load_teacher(
    out: Path, record: RunRecord, name: str, data: TrainingData, processes: Processes
) -> Backbone:
    """Return another network of the run, which was trained before."""
    networks = {each.name: each for each in method_of(record.config).trained_networks}
    with torch.random.fork_rng(devices=[]), warnings.catch_warnings():
        warnings.simplefilter("ignore")  # what there is to say was said when it was trained
        backbone = _untrained(record, networks[name], data)
    _load_start(backbone, out, record, name, processes)
    return backbone.eval()


def _load_start(
    backbone: Backbone, out: Path, record: RunRecord, name: str, processes: Processes
) -> None:
    """Load the weights of another network of the run, which was trained before."""
    # only the primary process adds networks to the record
    sha256 = processes.broadcast(lambda: record.networks[name].sha256)
    weights = read_weights(out / f"{name}.safetensors", sha256)
    # the one before may have no branch, or that of another loss
    own = backbone.model.state_dict()
    branch = {key: own[key] for key in own if key.startswith(f"{BRANCH}.")}
    kept = {key: each for key, each in weights.items() if not key.startswith(f"{BRANCH}.")}
    backbone.model.load_state_dict({**kept, **branch})


def _create_losses(
    recipe: Recipe, network: Network, backbone: Backbone, num_classes: int
) -> tuple[nn.Module, nn.Module]:
    """Return the objective for training and a second one, with its own state, for selection."""
    classes = 2 if network.is_ood_classifier else num_classes
    options = loss_options(recipe, network) | {"num_classes": classes, "reduction": "none"}
    training, selection = (registry.create_loss(network.loss, **options) for _ in range(2))
    if isinstance(training, FeatureLoss):
        training.prepare(backbone.num_features)
    return training, selection
