"""What networks cost on this device, from a few timed batches of each."""

import time
from collections.abc import Mapping
from dataclasses import dataclass, replace

import torch

from dpn_plugin._distributed import Processes
from dpn_plugin.backbones import Backbone
from dpn_plugin.bench.data import SuiteData
from dpn_plugin.bench.estimate.costs import Speed
from dpn_plugin.bench.planned_run import PlannedRun
from dpn_plugin.data import Batches, Samples
from dpn_plugin.detectors import create_detector, fits_on, parse_combination, reads
from dpn_plugin.errors import UserError
from dpn_plugin.evaluation import PeakMemory
from dpn_plugin.runs import Network, create_network, is_frozen, load_as_it_is, method_of
from dpn_plugin.training import TrainingData, load_training_data, time_training

_BATCH = 256
_ROUNDS = 3


@dataclass(frozen=True)
class Readers:
    """
    What the detectors of a plan read, for one network.

    :param images: those that read images
    :param fitted: those of them that are fitted to images
    :param stored: those that read stored outputs
    :param needs_train: whether one is fitted to training data
    """

    images: tuple[str, ...] = ()
    fitted: tuple[str, ...] = ()
    stored: tuple[str, ...] = ()
    needs_train: bool = False


@dataclass(frozen=True)
class Measured:
    """
    A network as an estimate needs it.

    :param speed: what it costs
    :param width: the number of its features
    :param readers: what the detectors read
    """

    speed: Speed
    width: int
    readers: Readers


def training_data(run: PlannedRun, data: SuiteData, width: int | None = None) -> TrainingData:
    """
    Return the training data of a run.

    :param run: the run
    :param data: of the suite
    :param width: of the features of a frozen network, in whose place zeros are used
    """

    def zeros(samples: Samples, view: object = None) -> Samples:
        return replace(samples, inputs=torch.zeros(len(samples), width or 1))

    config = run.config
    featurize = zeros if is_frozen(config) else None
    return load_training_data(config, method_of(config), data.datasets, featurize)


def create(run: PlannedRun, data: SuiteData) -> Backbone:
    """Return the first network of a run as it is before its training."""
    shape, classes = tuple(data.in_domain.inputs.shape[1:]), data.in_domain.classes
    method = method_of(run.config)
    with torch.random.fork_rng():
        if method.trains:
            return create_network(run.config, method.networks[0], shape, len(classes))
        return load_as_it_is(run.config, method.networks[0], shape, classes)


def find_readers(backbone: Backbone, names: tuple[str, ...]) -> Readers:
    """
    Return what detectors read; those that do not apply are left out.

    :param backbone: the network
    :param names: of detectors, or of combinations
    """
    images, fitted, stored, needs_train = [], [], [], False
    for name in _members(names):
        try:
            detector = create_detector(name, backbone.eval())
        except UserError:
            continue
        if reads(detector) == "inputs":
            images.append(name)
            if detector.requires_fit and fits_on(detector) == "inputs":
                fitted.append(name)
        else:
            stored.append(name)
        needs_train |= detector.requires_fit and name != "dpn-gaussian-kl"
    return Readers(tuple(images), tuple(fitted), tuple(stored), needs_train)


def _members(names: tuple[str, ...]) -> list[str]:
    combinations = [(name, parse_combination(name)) for name in names]
    return [m for name, found in combinations for m in (found.members if found else (name,))]


def measure(
    runs: Mapping[bool, PlannedRun], data: SuiteData, names: tuple[str, ...], processes: Processes
) -> Measured:
    """
    Time the network of some runs.

    :param runs: runs with this network, without and with outliers, if there are any
    :param data: of the suite
    :param names: the detectors
    :param processes: where it would be trained
    """
    run = next(iter(runs.values()))
    backbone = create(run, data)
    width, memory = backbone.num_features, PeakMemory(processes.device)
    readers = find_readers(backbone, names)
    forward = _time_forward(backbone, run, data, processes)
    times = {}
    for outliers, each in runs.items():
        network = _trained_network(each, outliers)
        if network is not None:
            own = training_data(each, data, width)
            times[outliers] = time_training(each.config, network, own, processes)
    weights = sum(each.nbytes for each in backbone.model.state_dict().values())
    speed = Speed(
        step=(_step(times, False), _step(times, True)),
        forward=forward,
        save=max((each.save for each in times.values()), default=0.0),
        weights=weights,
        memory=memory.measure() or 0,
    )
    return Measured(speed, width, readers)


def _step(times: Mapping[bool, object], outliers: bool) -> float:
    return getattr(times.get(outliers), "step", 0.0)


def _trained_network(run: PlannedRun, outliers: bool) -> Network | None:
    networks = (each for each in method_of(run.config).trained_networks if each.is_trained)
    return next((each for each in networks if each.uses_outliers == outliers), None)


def _time_forward(
    backbone: Backbone, run: PlannedRun, data: SuiteData, processes: Processes
) -> float:
    """Return the seconds of a forward pass, per image."""
    samples = data.in_domain_test
    x, _ = next(iter(Batches(samples, _BATCH, shuffle=False).epoch(0)))
    own = run.config.has_given_weights
    transform = TrainingData(data.in_domain, data.in_domain).create_transform(backbone, own=own)
    backbone.to(processes.device).eval()
    seconds = []
    for _ in range(_ROUNDS):
        start = time.perf_counter()
        with torch.inference_mode():
            backbone.outputs(transform(x.to(processes.device))).logits.cpu()
        seconds.append(time.perf_counter() - start)
    return min(seconds) / len(x)
