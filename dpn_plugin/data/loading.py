"""From a specification to samples in memory."""

import inspect
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from dpn_plugin.data.classes import class_names, kept_labels
from dpn_plugin.data.resize import fitted
from dpn_plugin.data.samples import Samples
from dpn_plugin.data.spec import SourceSpec
from dpn_plugin.data.undecoded import Undecoded
from dpn_plugin.errors import UserError, unknown_name
from dpn_plugin.plugins import registry

__all__ = ["load"]

_OURS = {"split", "root", "base", "image_size", "channels"}


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
    Find the data, keep the classes and the number asked for, bring images to one size.

    The scheme of the source names a loader of the registry, ``loader(argument, *, split, root)``.
    It may also take ``base``, ``image_size`` and ``channels`` (what is given here, for sources
    that generate images) and keywords of its own, which a user sets in ``options``.

    :param spec: what to load
    :param root: the folder of downloaded data sets
    :param base: where relative paths start, e.g. the folder of a suite file; then ``root``
    :param image_size: height and width
    :param channels: 1 or 3
    :param in_domain: renumber the labels 0 to K-1 in ascending order; otherwise all labels are -1,
        which means OOD
    :param seed: chooses the random subset of ``limit``
    :raises UserError: if the data is missing, damaged, or empty after filtering
    """
    spec = SourceSpec.parse(spec)
    hints = {"base": base, "image_size": image_size, "channels": channels}
    found = _found(spec, Path(root), hints)
    labels = _labels(found, needed=in_domain or spec.classes is not None)
    kept = kept_labels(spec, labels, found.classes)
    if in_domain:
        _check_labelled(spec, labels)
    indices = _limited(_chosen(spec, labels, kept), spec.limit, seed)
    samples = fitted(_taken(found, indices, image_size, channels), image_size, channels)
    if not in_domain:
        labels = torch.full_like(samples.labels, -1)
        return replace(samples, labels=labels, name=spec.name, classes=())
    labels = torch.searchsorted(torch.tensor(kept), samples.labels)
    return replace(samples, labels=labels, name=spec.name, classes=class_names(kept, found.classes))


def _found(spec: SourceSpec, root: Path, hints: dict[str, Any]) -> Samples | Undecoded:
    loader = registry.load("datasets", spec.scheme)
    parameters = inspect.signature(loader).parameters
    hints = {name: value for name, value in hints.items() if name in parameters}
    _check_options(spec, loader)
    return loader(spec.argument, split=spec.split, root=root, **hints, **spec.options)


def _check_options(spec: SourceSpec, loader: Callable[..., Any]) -> None:
    parameters = inspect.signature(loader).parameters.values()
    takes_any = any(parameter.kind is parameter.VAR_KEYWORD for parameter in parameters)
    named = {parameter.name for parameter in parameters if parameter.kind is parameter.KEYWORD_ONLY}
    for option in spec.options:
        if option in _OURS or not (takes_any or option in named):
            raise unknown_name(f"option of {spec.source}:", option, named - _OURS)


def _labels(found: Samples | Undecoded, *, needed: bool) -> Tensor:
    if isinstance(found, Samples):
        return found.labels
    if needed:
        return found.all_labels()
    return torch.full((len(found),), -1)


def _check_labelled(spec: SourceSpec, labels: Tensor) -> None:
    missing = int((labels < 0).sum())
    if missing and spec.classes is None:
        raise UserError(
            f"{spec.name} cannot be in-domain data: {missing} of its {len(labels)} samples have no "
            "label or a negative one."
        )


def _chosen(spec: SourceSpec, labels: Tensor, kept: list[int]) -> Tensor:
    indices = torch.arange(len(labels))
    if spec.classes is not None:
        indices = indices[torch.isin(labels, torch.tensor(kept))]
    if not len(indices):
        raise UserError(f"{spec.name} has no samples.")
    return indices


def _taken(
    found: Samples | Undecoded,
    indices: Tensor,
    image_size: tuple[int, int] | None,
    channels: int | None,
) -> Samples:
    if isinstance(found, Undecoded):
        return found.decoded(indices, image_size, channels)
    return found if len(indices) == len(found) else found.subset(indices)


def _limited(indices: Tensor, limit: int | None, seed: int) -> Tensor:
    if limit is None or limit >= len(indices):
        return indices
    order = torch.randperm(len(indices), generator=torch.Generator().manual_seed(seed))
    return indices[order[:limit].sort().values]
