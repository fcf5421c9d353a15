"""``torchvision:NAME``: every data set of torchvision that has images with one label each."""

import inspect
from pathlib import Path
from typing import Any

import torchvision.datasets

from dpn_plugin.data.lazy_images import LazyImages
from dpn_plugin.data.samples import Samples
from dpn_plugin.data.sources.dataset_adapter import to_samples
from dpn_plugin.data.sources.host_datasets import HostDataset
from dpn_plugin.errors import unknown_name

_LINK = "https://docs.pytorch.org/vision/stable/generated/torchvision.datasets.{}.html"
# folders have a scheme of their own; LSUN unpickles its cache file, whatever it holds
_NOT_BY_NAME = {"ImageFolder", "DatasetFolder", "VisionDataset", "LSUN", "LSUNClass"}


def load(argument: str, *, split: str | None, root: Path, **options: Any) -> Samples | LazyImages:
    """
    Return the images of a data set of torchvision.

    :param argument: a class of ``torchvision.datasets``, e.g. ``CIFAR10``; its required argument
        follows after a slash, e.g. ``EMNIST/letters``
    :param split: ``"train"``, ``"test"`` or the class's own name of the split, e.g. ``"val"``
    :param root: folder of downloaded data sets, with torchvision's layout
    :param options: further keywords of the class, e.g. ``small=True`` for ``Places365``;
        nothing is downloaded unless ``download=True`` is among them
    """
    name, _, variant = argument.partition("/")
    names = set(torchvision.datasets.__all__) - _NOT_BY_NAME
    names = {name for name in names if inspect.isclass(getattr(torchvision.datasets, name))}
    if name not in names:
        raise unknown_name("torchvision data set", name, names)
    source = f"torchvision:{argument}"
    host = HostDataset(getattr(torchvision.datasets, name), source, _LINK.format(name))
    return to_samples(host.construct(variant, split, root, options), source)
