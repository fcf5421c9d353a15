"""The data of a training run: what is trained on, and what is held out for selection."""

from dataclasses import dataclass, replace

import torch

from dpn_plugin.backbones import Backbone
from dpn_plugin.data import Library, Samples, fingerprint, hold_out
from dpn_plugin.data.normalize import channel_statistics
from dpn_plugin.data.transform import Transform
from dpn_plugin.errors import UserError, choices
from dpn_plugin.plugins import registry
from dpn_plugin.training.config import TrainConfig
from dpn_plugin.training.methods import Method, Network

__all__ = ["Material", "load_in_domain", "load_material"]


@dataclass(frozen=True)
class Material:
    """
    :param train: in-domain samples to train on
    :param held_out: in-domain samples for selection
    :param outliers: OOD samples to train on
    :param held_out_outliers: OOD samples for selection
    """

    train: Samples
    held_out: Samples
    outliers: Samples | None = None
    held_out_outliers: Samples | None = None

    @property
    def num_classes(self) -> int:
        """Number of in-domain classes."""
        return len(self.train.classes)

    def for_network(self, network: Network) -> "Material":
        """:return: the samples that ``network`` is trained on, with the labels that it learns"""
        if network.in_domain_only:
            return Material(self.train, self.held_out)
        if not network.told_apart:
            return self
        return Material(
            train=_relabelled(self.train, 0),
            held_out=_relabelled(self.held_out, 0),
            outliers=_relabelled(self.outliers, 1),
            held_out_outliers=_relabelled(self.held_out_outliers, 1),
        )

    def transform(self, backbone: Backbone) -> Transform:
        """:return: what brings a batch to ``backbone``, normalised by the training data"""
        if self.train.inputs.ndim == 2:
            dimensions = self.train.inputs.shape[1]
            return Transform((0.0,) * dimensions, (1.0,) * dimensions)
        mean, std = channel_statistics(self.train)
        # a channel that never changes carries nothing; it must only not divide by zero
        std = tuple(value if value > 1e-6 else 1.0 for value in std)
        return Transform(mean, std, (backbone.input_size[1], backbone.input_size[2]))

    def fingerprints(self) -> dict[str, str]:
        """:return: the hash of every part"""
        parts = vars(self).items()
        return {name: fingerprint(samples) for name, samples in parts if samples is not None}


def load_in_domain(config: TrainConfig, library: Library) -> tuple[Samples, Samples | None]:
    """
    :return: the in-domain samples for training and selection, and those kept back for tests
    :raises UserError: if there are fewer than two classes
    """
    size = config.recipe.image_size
    image_size = None if size is None else (size, size)
    samples = library.load(
        config.in_domain, image_size=image_size, channels=config.channels, in_domain=True
    )
    if len(samples.classes) < 2:
        raise UserError(f"{samples.name} must have at least 2 classes, not {len(samples.classes)}.")
    return hold_out(samples, config.hold_back, seed=0) if config.hold_back else (samples, None)


def load_material(config: TrainConfig, method: Method, library: Library) -> Material:
    """
    :param config: what to load
    :param method: decides whether outliers are needed
    :param library: where the data is
    :raises UserError: if data is missing or does not fit
    """
    samples, _ = load_in_domain(config, library)
    train, held_out = hold_out(samples, config.recipe.hold_out, config.seed)
    if not method.needs_outliers:
        return Material(train, held_out)
    outliers = _outliers(config, method, samples, library)
    kept, held_out_outliers = hold_out(outliers, config.recipe.hold_out, config.seed)
    return Material(train, held_out, kept, held_out_outliers)


def _outliers(config: TrainConfig, method: Method, samples: Samples, library: Library) -> Samples:
    if not config.outliers:
        raise UserError(
            f"Method {method.name!r} needs outliers to train with, and none were given. "
            f"Methods that need none: {choices(_methods_without_outliers())}."
        )
    sets = [library.load_like(samples, spec) for spec in config.outliers]
    shape = tuple(samples.inputs.shape[1:])
    for each in sets:
        if tuple(each.inputs.shape[1:]) != shape:
            raise UserError(
                f"{each.name} has inputs of shape {tuple(each.inputs.shape[1:])}, the "
                f"in-domain data of {shape}."
            )
    return Samples(
        torch.cat([each.inputs for each in sets]),
        torch.cat([each.labels for each in sets]),
        " and ".join(each.name for each in sets),
    )


def _methods_without_outliers() -> list[str]:
    return [
        name
        for name in registry.list_methods()
        if not registry.load("methods", name).needs_outliers
    ]


def _relabelled(samples: Samples | None, label: int) -> Samples:
    if samples is None:
        raise ValueError("a network that tells OOD samples apart is trained with outliers")
    labels = torch.full_like(samples.labels, label)
    return replace(samples, labels=labels, classes=("in-domain", "ood"))
