"""``pytorch_ood:NAME``: every image data set of pytorch-ood, and its noise."""

from math import prod
from pathlib import Path
from typing import Any

import numpy as np
import pytorch_ood.dataset.img as host_sets
import torch
from pytorch_ood.dataset.img.noise import NoiseDataset

from dpn_plugin.data.lazy_images import LazyImages
from dpn_plugin.data.samples import Samples, check_memory
from dpn_plugin.data.sources.dataset_adapter import check_length, to_samples
from dpn_plugin.data.sources.host_datasets import HostDataset
from dpn_plugin.errors import UserError, unknown_name

_LINK = "https://pytorch-ood.readthedocs.io/en/latest/datasets.html"


def load(
    argument: str,
    *,
    split: str | None,
    root: Path,
    image_size: tuple[int, int] | None = None,
    channels: int | None = None,
    **options: Any,
) -> Samples | LazyImages:
    """
    Return the images of a data set of pytorch-ood.

    :param argument: a class of ``pytorch_ood.dataset.img``, e.g. ``Textures``; its required
        argument follows after a slash, e.g. ``GaussianNoise/1000`` for 1,000 images
    :param split: the class's own name of the split, e.g. ``"val"`` for ``TinyImageNet``
    :param root: folder of downloaded data sets
    :param image_size: height and width of noise, 32 x 32 if not given
    :param channels: channels of noise, 3 if not given
    :param options: further keywords of the class; noise has ``seed=0`` if not given
    """
    name, _, variant = argument.partition("/")
    if name not in host_sets.__all__:
        raise unknown_name("pytorch-ood data set", name, host_sets.__all__)
    cls = getattr(host_sets, name)
    source = f"pytorch_ood:{argument}"
    is_noise = issubclass(cls, NoiseDataset)
    if is_noise and "size" in options:
        raise UserError(f"{source}: noise has the size of the suite's images; leave out size.")
    if is_noise:
        options = {"size": (*(image_size or (32, 32)), channels or 3), "seed": 0, **options}
    host = HostDataset(cls, source, getattr(cls.info, "homepage", None) or _LINK)
    dataset = host.construct(variant, split, root, options)
    return _noise_samples(dataset, source) if is_noise else to_samples(dataset, source)


def _noise_samples(noise: NoiseDataset, source: str) -> Samples:
    check_length(noise, source)
    if not len(noise):
        raise UserError(f"{source}: length must be at least 1.")
    check_memory(len(noise) * prod(noise.size), source)
    try:
        # the host draws new numbers whenever an item is read, so each is read once and in order
        images = np.stack([np.array(noise[index][0]) for index in range(len(noise))])
    except (TypeError, ValueError) as error:
        raise UserError(f"{source}: {error}") from error
    pixels = torch.from_numpy(images.reshape(*images.shape[:3], -1)).permute(0, 3, 1, 2)
    return Samples(pixels.contiguous(), torch.full((len(noise),), -1), source)
