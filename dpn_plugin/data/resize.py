"""Images brought to the size and the channels that a model takes, batch by batch."""

from dataclasses import replace

import torch
from torch import Tensor
from torchvision.transforms.v2 import functional as transforms

from dpn_plugin.data.samples import Samples
from dpn_plugin.errors import UserError

__all__ = ["centre", "fitted"]

_CHUNK = 1024


def fitted(samples: Samples, image_size: tuple[int, int] | None, channels: int | None) -> Samples:
    """
    Scale so that the image covers ``image_size`` (antialiased, bilinear) and cut at the centre;
    make grey images RGB by repetition and RGB images grey by luminance.

    :param image_size: height and width; as they are if not given
    :param channels: 1 or 3; as they are if not given
    :raises UserError: for points, for sizes below 1 and for other numbers of channels
    """
    if samples.inputs.ndim == 2:
        if image_size is not None or channels is not None:
            raise UserError(f"{samples.name} holds points, which have no image size or channels.")
        return samples
    _, have, *size = samples.inputs.shape
    image_size = image_size or (size[0], size[1])
    channels = channels or have
    if have != channels and {have, channels} != {1, 3}:
        raise UserError(f"{samples.name} has {have} channels and cannot be brought to {channels}.")
    if (have, tuple(size)) == (channels, image_size):
        return samples
    inputs = torch.empty((len(samples), channels, *image_size), dtype=torch.uint8)
    for source, target in zip(samples.inputs.split(_CHUNK), inputs.split(_CHUNK), strict=True):
        target.copy_(_with_channels(_resized(source, image_size), channels))
    return replace(samples, inputs=inputs)


def centre(height: int, width: int, size: tuple[int, int]) -> tuple[int, int, int, int]:
    """:return: top, left, height and width of the largest middle part with the shape of ``size``"""
    scale = min(height / size[0], width / size[1])
    rows, columns = max(1, round(size[0] * scale)), max(1, round(size[1] * scale))
    return (height - rows) // 2, (width - columns) // 2, rows, columns


def _resized(images: Tensor, size: tuple[int, int]) -> Tensor:
    top, left, height, width = centre(images.shape[2], images.shape[3], size)
    images = images[:, :, top : top + height, left : left + width]
    return transforms.resize(images, list(size), antialias=True)


def _with_channels(images: Tensor, channels: int) -> Tensor:
    if images.shape[1] == channels:
        return images
    if channels == 1:
        return transforms.rgb_to_grayscale(images)
    return images.expand(-1, channels, -1, -1)
