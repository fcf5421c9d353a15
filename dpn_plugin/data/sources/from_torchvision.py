"""``torchvision:NAME``: every data set of torchvision that gives images with one label each."""

import inspect
from pathlib import Path
from typing import Any

import torchvision.datasets

from dpn_plugin.data.samples import Samples
from dpn_plugin.data.sources.hosts import HostSet
from dpn_plugin.data.sources.items import samples_of
from dpn_plugin.data.undecoded import Undecoded
from dpn_plugin.errors import unknown_name

__all__ = ["load"]

_LINK = "https://docs.pytorch.org/vision/stable/generated/torchvision.datasets.{}.html"
# paths of one's own have a scheme of their own; LSUN unpickles whatever lies in its cache file
_NOT_BY_NAME = {"ImageFolder", "DatasetFolder", "VisionDataset", "LSUN", "LSUNClass"}


def load(argument: str, *, split: str | None, root: Path, **options: Any) -> Samples | Undecoded:
    """
    :param argument: a class of ``torchvision.datasets``, e.g. ``CIFAR10``; with what it demands
        after a slash, e.g. ``EMNIST/letters``
    :param split: ``"train"``, ``"test"`` or the class's own word, e.g. ``"val"``
    :param root: folder of downloaded data sets, as torchvision lays it out
    :param options: further keywords of the class, e.g. ``small=True`` for ``Places365``;
        nothing is downloaded unless ``download=True`` is among them
    """
    name, _, variant = argument.partition("/")
    names = set(torchvision.datasets.__all__) - _NOT_BY_NAME
    names = {name for name in names if inspect.isclass(getattr(torchvision.datasets, name))}
    if name not in names:
        raise unknown_name("torchvision data set", name, names)
    source = f"torchvision:{argument}"
    host = HostSet(getattr(torchvision.datasets, name), source, _LINK.format(name))
    return samples_of(host.dataset(variant, split, root, options), source)
