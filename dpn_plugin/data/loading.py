"""From a specification to samples in memory."""

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from dpn_plugin.data.lazy_images import LazyImages
from dpn_plugin.data.samples import Samples
from dpn_plugin.data.selection import class_names, kept_labels, kept_positions
from dpn_plugin.data.spec import SOURCE_KEYS, SourceSpec
from dpn_plugin.data.transform import fit_images
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
    :raises UserError: if the data is missing, damaged, or empty after filtering
    """
    spec = SourceSpec.parse(spec)
    hints = {"base": base, "image_size": image_size, "channels": channels}
    return _select(spec, Path(root), hints, in_domain, seed).read(image_size, channels)


@dataclass(frozen=True, eq=False)
class _Selection:
    """
    A part of a source that is known to exist; its images need not be decoded or resized yet.

    :param spec: what was asked for
    :param source: where the samples come from
    :param indices: their positions
    :param kept: the labels of the classes that are kept
    :param in_domain: whether labels are kept
    """

    spec: SourceSpec
    source: Samples | LazyImages
    indices: Tensor
    kept: list[int]
    in_domain: bool

    def read(self, image_size: tuple[int, int] | None, channels: int | None) -> Samples:
        """Return the samples; images are brought to one size and number of channels."""
        source = self.source
        if isinstance(source, LazyImages):
            source = source.decode(self.indices, image_size, channels)
        samples = fit_images(source, image_size, channels)
        name = self.spec.name
        if not self.in_domain:
            labels = torch.full_like(samples.labels, -1)
            return replace(samples, labels=labels, name=name, classes=())
        labels = torch.searchsorted(torch.tensor(self.kept), samples.labels)
        names = class_names(self.kept, self.source.classes)
        return replace(samples, labels=labels, name=name, classes=names)


def _select(
    spec: SourceSpec, root: Path, hints: dict[str, Any], in_domain: bool, seed: int = 0
) -> _Selection:
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
    return _Selection(spec, source, indices, kept, in_domain)


class DatasetCache:
    """
    Loads every data set once, however many runs use it.

    :param root: the folder of downloaded data sets
    :param base: where relative paths of sources start; then ``root``
    """

    def __init__(self, root: str | Path, base: str | Path | None = None) -> None:
        self.root, self.base = root, base
        self._loaded: dict[tuple[Any, ...], Samples] = {}
        self._selected: dict[tuple[Any, ...], _Selection] = {}

    def find(
        self,
        spec: SourceSpec,
        *,
        image_size: tuple[int, int] | None = None,
        channels: int | None = None,
        in_domain: bool = False,
    ) -> None:
        """
        Check that a data set is there, without decoding its images; :meth:`load` continues there.

        :raises MissingData: if it is not
        :raises UserError: if it is damaged, or empty after filtering
        """
        hints = {"base": self.base, "image_size": image_size, "channels": channels}
        key = self._key(spec, hints, in_domain)
        if key not in self._selected:
            self._selected[key] = _select(spec, Path(self.root), hints, in_domain)

    def load(
        self,
        spec: SourceSpec,
        *,
        image_size: tuple[int, int] | None = None,
        channels: int | None = None,
        in_domain: bool = False,
    ) -> Samples:
        """Return what :func:`load` gives for these arguments."""
        key = (spec.model_dump_json(), image_size, channels, in_domain)
        if key not in self._loaded:
            self.find(spec, image_size=image_size, channels=channels, in_domain=in_domain)
            hints = {"base": self.base, "image_size": image_size, "channels": channels}
            selection = self._selected.pop(self._key(spec, hints, in_domain))
            self._loaded[key] = selection.read(image_size, channels)
        return self._loaded[key]

    def forget_found(self) -> None:
        """Release the memory of data sets that were found and not loaded."""
        self._selected.clear()

    def _key(self, spec: SourceSpec, hints: dict[str, Any], in_domain: bool) -> tuple[Any, ...]:
        # most sources do not depend on the image size, which is known once training data is loaded
        taken = _taken_hints(registry.load("datasets", spec.scheme), hints)
        return (spec.model_dump_json(), *taken.values(), in_domain)

    def load_like(self, samples: Samples, spec: SourceSpec, *, in_domain: bool = False) -> Samples:
        """
        Return the data of ``spec``, brought to the image size and channels of ``samples``.

        :param samples: data that was loaded before, e.g. the training data
        :param spec: what to load
        :param in_domain: keep labels, as in :func:`load`; otherwise all samples are OOD
        """
        shape = samples.inputs.shape
        if len(shape) != 4:
            return self.load(spec, in_domain=in_domain)
        image_size = (shape[2], shape[3])
        return self.load(spec, image_size=image_size, channels=shape[1], in_domain=in_domain)


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
    return loader(split=spec.split, root=root, **_taken_hints(loader, hints), **options)


def _taken_hints(loader: Callable[..., Any], hints: dict[str, Any]) -> dict[str, Any]:
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
