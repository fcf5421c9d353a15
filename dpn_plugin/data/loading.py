"""From a specification to samples."""

import warnings
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from dpn_plugin.data.fitted import FittedImages
from dpn_plugin.data.inputs import MappedImages
from dpn_plugin.data.lazy_images import LazyImages
from dpn_plugin.data.samples import Samples
from dpn_plugin.data.selection import class_names, kept_labels, kept_positions
from dpn_plugin.data.spec import SOURCE_KEYS, SourceSpec
from dpn_plugin.data.storage import ImageStore, StorageOptions
from dpn_plugin.data.transform import fit_images, fitted_shape
from dpn_plugin.errors import UserError
from dpn_plugin.plugins import check_options, registry, takes

# arguments of a source that load() fills; users cannot set them as options
_RESERVED = ("split", "root", "base", "image_size", "channels")


def load(
    spec: SourceSpec | str,
    *,
    root: str | Path,
    base: str | Path | None = None,
    image_size: tuple[int, int] | None = None,
    channels: int | None = None,
    in_domain: bool = False,
    seed: int = 0,
    storage: StorageOptions | None = None,
) -> Samples:
    """
    Load a data set, keep the classes and the number asked for, and bring images to one size.

    The scheme of the source names a loader of the registry, ``loader(argument, *, split, root)``.
    It may also take ``base``, ``image_size`` and ``channels`` (the values given here, for sources
    that generate images) and keywords of its own, which a user sets in ``options``.

    :param spec: what to load
    :param root: the folder of downloaded data sets
    :param base: where relative paths start, e.g. the folder of a suite file; then ``root``
    :param image_size: height and width
    :param channels: 1 or 3
    :param in_domain: renumber the labels 0 to K-1 in ascending order; otherwise all labels are -1,
        which means OOD
    :param seed: selects the random subset of ``limit``
    :param storage: where images are kept; by default those that fit are decoded into memory
    :raises UserError: if the data is missing, damaged, or empty after filtering
    """
    spec, store = SourceSpec.parse(spec), ImageStore(storage or StorageOptions())
    hints = {"base": base, "image_size": image_size, "channels": channels}
    return select(spec, Path(root), hints, in_domain, seed).read(image_size, channels, store)


@dataclass(frozen=True, eq=False)
class Selection:
    """
    A part of a source that is known to exist; its images need not be decoded or resized yet.

    :param spec: what was asked for
    :param source: where the samples come from
    :param labels: of all samples of the source, -1 where they do not matter
    :param indices: the positions of the chosen ones
    :param kept: the labels of the classes that are kept
    :param in_domain: whether labels are kept
    """

    spec: SourceSpec
    source: Samples | LazyImages
    labels: Tensor
    indices: Tensor
    kept: list[int]
    in_domain: bool

    def read(
        self, image_size: tuple[int, int] | None, channels: int | None, store: ImageStore
    ) -> Samples:
        """Return the samples; images are brought to one size and number of channels."""
        if isinstance(self.source, LazyImages):
            samples = self._decoded(self.source, image_size, channels, store)
        else:
            samples = self._fitted(self.source, image_size, channels, store)
        name = self.spec.name
        if not self.in_domain:
            labels = torch.full((len(samples),), -1)
            return replace(samples, labels=labels, name=name, classes=())
        labels = torch.searchsorted(torch.tensor(self.kept), samples.labels)
        names = class_names(self.kept, self.source.classes)
        return replace(samples, labels=labels, name=name, classes=names)

    def _decoded(
        self,
        source: LazyImages,
        image_size: tuple[int, int] | None,
        channels: int | None,
        store: ImageStore,
    ) -> Samples:
        skip = self.spec.skip_damaged
        decoder = source.decoder(self.indices, image_size, channels, skip)
        inputs, kept = store.load(decoder, self.spec.name, skip)
        labels = self.labels[self.indices[kept]]
        if damaged := len(self.indices) - len(kept):
            warnings.warn(
                f"{damaged} of the {len(self.indices)} files of {self.spec.name} cannot be read "
                "and were left out (skip_damaged = true)."
            )
        return Samples(inputs, labels, source.name, source.classes, damaged)

    def _fitted(
        self,
        source: Samples,
        image_size: tuple[int, int] | None,
        channels: int | None,
        store: ImageStore,
    ) -> Samples:
        inputs, shape = source.inputs, fitted_shape(source, image_size, channels)
        if isinstance(inputs, MappedImages) and shape != inputs.image_shape:
            indices = inputs.origin(torch.arange(len(inputs))).numpy()
            decoder = FittedImages(inputs, indices, (shape[0], shape[1], shape[2]))
            return replace(source, inputs=store.load(decoder, self.spec.name)[0])
        return store.keep(fit_images(source, image_size, channels))


def select(
    spec: SourceSpec, root: Path, hints: dict[str, Any], in_domain: bool, seed: int = 0
) -> Selection:
    """
    Return the part of a source that a specification asks for, before images are decoded.

    :param spec: what to load
    :param root: the folder of downloaded data sets
    :param hints: values that the source may take: ``base``, ``image_size`` and ``channels``
    :param in_domain: whether labels are kept
    :param seed: selects the random subset of ``limit``
    :raises UserError: if the data is missing, damaged, or empty after filtering
    """
    source = open_source(spec, root, hints)
    needs_labels = in_domain or spec.classes is not None
    labels = _labels(source, needed=needs_labels)
    if needs_labels and isinstance(source, LazyImages) and source.unlabelled:
        use = "cannot be in-domain data" if in_domain else "has no classes to choose from"
        raise UserError(f"{spec.name} {use}: {source.unlabelled}.")
    kept = kept_labels(spec, labels, source.classes)
    if in_domain:
        _check_labelled(spec, labels)
    indices = kept_positions(spec, labels, kept, seed)
    if isinstance(source, Samples) and len(indices) < len(source):
        source = source.subset(indices)  # what is not needed does not stay in memory
    return Selection(spec, source, labels, indices, kept, in_domain)


def open_source(spec: SourceSpec, root: Path, hints: dict[str, Any]) -> Samples | LazyImages:
    """
    Return all samples of a source, with its options.

    :param spec: what to open; classes and limit are not applied
    :param root: the folder of downloaded data sets
    :param hints: further arguments of :func:`load`, for loaders that take them
    :raises UserError: if the source is unknown, or an option is wrong
    """
    loader = partial(registry.load("datasets", spec.scheme), spec.argument)
    options = check_options(
        spec.source, loader, dict(spec.options), reserved=_RESERVED, also=SOURCE_KEYS
    )
    return loader(split=spec.split, root=root, **taken_hints(loader, hints), **options)


def taken_hints(loader: Callable[..., Any], hints: dict[str, Any]) -> dict[str, Any]:
    """Return those of the values that a source takes."""
    return {name: value for name, value in hints.items() if takes(loader, name)}


def _labels(source: Samples | LazyImages, *, needed: bool) -> Tensor:
    if isinstance(source, Samples):
        return source.labels
    if needed:
        return source.read_labels()
    return torch.full((len(source),), -1)


def _check_labelled(spec: SourceSpec, labels: Tensor) -> None:
    missing = int((labels < 0).sum())
    if missing and spec.classes is None:
        raise UserError(
            f"{spec.name} cannot be in-domain data: {missing} of its {len(labels)} samples have no "
            "label or a negative one."
        )
