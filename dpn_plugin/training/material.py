"""The data of a training run: what is trained on, and what is held out for selection."""

from dataclasses import dataclass, replace
from pathlib import Path

import torch

from dpn_plugin.backbones import Backbone
from dpn_plugin.data import Samples, fingerprint, hold_out, load
from dpn_plugin.data.normalize import channel_statistics
from dpn_plugin.data.transform import Transform
from dpn_plugin.errors import UserError, choices
from dpn_plugin.plugins import registry
from dpn_plugin.training.config import TrainConfig
from dpn_plugin.training.methods import Method, Network

__all__ = ["Material", "load_material"]


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
        """:return: the samples with the labels that ``network`` learns"""
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


def load_material(
    config: TrainConfig, method: Method, root: Path, base: Path | None = None
) -> Material:
    """
    :param config: what to load
    :param method: decides whether outliers are needed
    :param root: the folder of downloaded data sets
    :param base: where relative paths start
    :raises UserError: if data is missing or does not fit
    """
    size = config.recipe.image_size
    image_size = None if size is None else (size, size)
    samples = load(config.in_domain, root=root, base=base, image_size=image_size, in_domain=True)
    if len(samples.classes) < 2:
        raise UserError(f"{samples.name} must have at least 2 classes, not {len(samples.classes)}.")
    train, held_out = hold_out(samples, config.recipe.hold_out, config.seed)
    if not method.needs_outliers:
        return Material(train, held_out)
    outliers = _outliers(config, method, samples, root, base)
    kept, held_out_outliers = hold_out(outliers, config.recipe.hold_out, config.seed)
    return Material(train, held_out, kept, held_out_outliers)


def _outliers(
    config: TrainConfig, method: Method, samples: Samples, root: Path, base: Path | None
) -> Samples:
    if config.outliers is None:
        raise UserError(
            f"Method {method.name!r} needs outliers to train with, and none were given. "
            f"Methods that need none: {choices(_methods_without_outliers())}."
        )
    shape = samples.inputs.shape
    size, channels = ((shape[2], shape[3]), shape[1]) if len(shape) == 4 else (None, None)
    outliers = load(config.outliers, root=root, base=base, image_size=size, channels=channels)
    if outliers.inputs.shape[1:] != shape[1:]:
        raise UserError(
            f"{outliers.name} has inputs of shape {tuple(outliers.inputs.shape[1:])}, the "
            f"in-domain data of {tuple(shape[1:])}."
        )
    return outliers


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
