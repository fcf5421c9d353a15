"""The data of a training run: what trains it, selects its weights and calibrates thresholds."""

from dataclasses import dataclass, replace
from typing import Protocol

import torch

from dpn_plugin.backbones import Backbone
from dpn_plugin.data import (
    DatasetCache,
    Samples,
    SourceSpec,
    Transform,
    channel_statistics,
    check_calibration,
    check_no_overlap,
    check_set_aside,
    fingerprint,
    hold_out,
    join,
    set_aside,
)
from dpn_plugin.errors import UserError
from dpn_plugin.runs import Method, Network, TrainConfig, View


class Featurize(Protocol):
    """Replaces images by features, see :class:`~dpn_plugin.runs.FrozenBase`."""

    def __call__(self, samples: Samples, view: View | None = None, /) -> Samples:
        """Return the samples, or a view of them, with features in the place of images."""


@dataclass(frozen=True)
class TrainingData:
    """
    The samples of a training run.

    :param train: in-domain samples to train on
    :param held_out: in-domain samples for selection
    :param outliers: OOD samples to train on
    :param held_out_outliers: OOD samples for selection
    :param calibration: in-domain samples that neither train, nor select, nor fit a detector
    :param features: the same samples with features of a frozen network as inputs
    :param views: the training samples again, with features of augmented images, for the epochs
        in turn
    """

    train: Samples
    held_out: Samples
    outliers: Samples | None = None
    held_out_outliers: Samples | None = None
    calibration: Samples | None = None
    features: "TrainingData | None" = None
    views: tuple["TrainingData", ...] = ()

    @property
    def num_classes(self) -> int:
        """Number of in-domain classes."""
        return len(self.train.classes)

    @property
    def parts(self) -> dict[str, Samples]:
        """The parts that there are, by name."""
        return {name: each for name, each in vars(self).items() if isinstance(each, Samples)}

    @property
    def held_out_parts(self) -> list[Samples]:
        """The held-out samples, in-domain and, if there are any, OOD."""
        return [each for each in (self.held_out, self.held_out_outliers) if each is not None]

    def for_network(self, network: Network) -> "TrainingData":
        """Return the samples that ``network`` is trained on, with the labels that it learns."""
        views = tuple(each.for_network(network) for each in self.views)
        return replace(self._for_network(network), views=views)

    def _for_network(self, network: Network) -> "TrainingData":
        if not network.uses_outliers:
            return replace(self, outliers=None, held_out_outliers=None)
        if not network.is_ood_classifier:
            return self
        return TrainingData(
            train=_relabel(self.train, 0),
            held_out=_relabel(self.held_out, 0),
            outliers=_relabel(self.outliers, 1),
            held_out_outliers=_relabel(self.held_out_outliers, 1),
        )

    def create_transform(self, backbone: Backbone, *, own: bool = False) -> Transform:
        """
        Return what brings a batch to ``backbone``.

        :param backbone: the network
        :param own: prepare images as timm's configuration says, for networks with given weights;
            otherwise they are normalised by the training data
        """
        if self.train.inputs.ndim == 2:
            dimensions = self.train.inputs.shape[1]
            return Transform((0.0,) * dimensions, (1.0,) * dimensions)
        size = (backbone.input_size[1], backbone.input_size[2])
        if own:
            mean, std, interpolation, crop = backbone.preprocessing
            return Transform(mean, std, size, interpolation, crop)
        mean, std = channel_statistics(self.train)
        # a constant channel carries no information, but must not divide by zero
        std = tuple(value if value > 1e-6 else 1.0 for value in std)
        return Transform(mean, std, size)

    def compute_fingerprints(self) -> dict[str, str]:
        """Return the hash of every part."""
        return {name: fingerprint(samples) for name, samples in self.parts.items()}


def load_in_domain(config: TrainConfig, datasets: DatasetCache) -> tuple[Samples, Samples | None]:
    """
    Return the in-domain samples for training and selection, and those kept back for tests.

    :raises UserError: if there are fewer than two classes
    """
    size = config.recipe.image_size
    image_size = None if size is None else (size, size)
    samples = datasets.load(
        config.in_domain, image_size=image_size, channels=config.channels, in_domain=True
    )
    if len(samples.classes) < 2:
        raise UserError(f"{samples.name} must have at least 2 classes, not {len(samples.classes)}.")
    return hold_out(samples, config.hold_back, seed=0) if config.hold_back else (samples, None)


def load_training_data(
    config: TrainConfig,
    method: Method,
    datasets: DatasetCache,
    featurize: Featurize | None = None,
) -> TrainingData:
    """
    Load the data of a training run.

    :param config: what to load
    :param method: decides whether outliers are needed
    :param datasets: where the data is
    :param featurize: replaces images by the features of a frozen network; it is called with whole
        sets, which are the same for all seeds
    :raises UserError: if data is missing or does not fit
    """
    samples, _ = load_in_domain(config, datasets)
    data = split_in_domain(samples, config)
    if data.calibration is not None:
        check_set_aside(data.calibration, [data.train, data.held_out])
    if config.calibration is not None:
        data = replace(data, calibration=load_calibration(config.calibration, samples, datasets))
        named = "calibration", config.calibration, data.calibration
        check_calibration(named, [("in_domain", config.in_domain, samples)])
    outliers = None
    if method.needs_outliers:
        outliers = _load_outliers(config, method, (samples, data.calibration), datasets)
    if featurize is not None:
        features = _feature_data(config, samples, outliers, featurize)
        if config.calibration is not None and data.calibration is not None:
            features = replace(features, calibration=featurize(data.calibration))
        data = replace(data, features=features)
    return _with_outliers(data, outliers, config)


def _feature_data(
    config: TrainConfig, samples: Samples, outliers: Samples | None, featurize: Featurize
) -> TrainingData:
    """Return the training data with features, and its views if there are several."""
    recipe = config.recipe

    def divided(number: int | None) -> TrainingData:
        own = other = None
        if number is not None:
            own = View(number, recipe.augmentation)
            other = View(number, recipe.outlier_augmentation or recipe.augmentation)
        points = None if outliers is None else featurize(outliers, other)
        return _with_outliers(split_in_domain(featurize(samples, own), config), points, config)

    views = tuple(divided(number) for number in range(recipe.views)) if recipe.views > 1 else ()
    return replace(divided(None), views=views)


def _with_outliers(
    data: TrainingData, outliers: Samples | None, config: TrainConfig
) -> TrainingData:
    if outliers is None:
        return data
    kept, held_out_outliers = hold_out(outliers, config.recipe.hold_out, config.seed)
    return replace(data, outliers=kept, held_out_outliers=held_out_outliers)


def split_in_domain(samples: Samples, config: TrainConfig) -> TrainingData:
    """
    Return the in-domain samples divided into those for training, selection and calibration.

    :param samples: without those that are kept back for tests
    :param config: the shares and the seed
    """
    share, calibration = config.recipe.calibration, None
    if share:
        samples, calibration = set_aside(samples, share, config.seed)
    train, held_out = hold_out(samples, config.recipe.hold_out, config.seed)
    return TrainingData(train, held_out, calibration=calibration)


def load_calibration(spec: SourceSpec, samples: Samples, datasets: DatasetCache) -> Samples:
    """
    Load calibration data from a source of its own.

    :param spec: the source
    :param samples: the in-domain training data, whose shape and classes it must have
    :param datasets: where the data is
    :raises UserError: if data is missing or does not fit
    """
    calibration = datasets.load_like(samples, spec, in_domain=True)
    if calibration.classes != samples.classes:
        raise UserError(
            f"calibration has other classes than in_domain: {len(calibration.classes)} and "
            f"{len(samples.classes)}, or in another order."
        )
    return calibration


def _load_outliers(
    config: TrainConfig,
    method: Method,
    in_domain: tuple[Samples, Samples | None],
    datasets: DatasetCache,
) -> Samples:
    samples, calibration = in_domain
    if not config.outliers:
        raise UserError(
            f"Method {method.name!r} needs outliers to train with, and none were given. Methods "
            "that need none are, for example, 'baseline', 'edl' and 'deep-ensemble'."
        )
    sets = [datasets.load_like(samples, spec) for spec in config.outliers]
    shape = tuple(samples.inputs.shape[1:])
    for each in sets:
        if tuple(each.inputs.shape[1:]) != shape:
            raise UserError(
                f"{each.name} has inputs of shape {tuple(each.inputs.shape[1:])}, the "
                f"in-domain data of {shape}."
            )
    loaded = [(spec.name, spec, each) for spec, each in zip(config.outliers, sets, strict=True)]
    known = [("in_domain", config.in_domain, samples)]
    if config.calibration is not None and calibration is not None:
        known.append(("calibration", config.calibration, calibration))
    check_no_overlap(loaded, [], known)
    return Samples(
        join([each.inputs for each in sets]),
        torch.cat([each.labels for each in sets]),
        " and ".join(each.name for each in sets),
    )


def _relabel(samples: Samples | None, label: int) -> Samples:
    if samples is None:
        raise ValueError("an OOD classifier is trained with outliers")
    labels = torch.full_like(samples.labels, label)
    return replace(samples, labels=labels, classes=("in-domain", "ood"))
