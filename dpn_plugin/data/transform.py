"""Changes of size, channels and scale: when images are loaded, and before a batch is processed."""

import math
from collections.abc import Sequence
from dataclasses import asdict, dataclass, replace
from typing import Annotated, Any, Literal

import torch
from pydantic import Field
from torch import Tensor
from torch.nn import functional as F
from torchvision.transforms.v2 import functional as transforms

from dpn_plugin.data.inputs import chunks
from dpn_plugin.data.samples import Samples
from dpn_plugin.errors import UserError

_RESIZE_CHUNK = 1024
_STATISTICS_CHUNK, _STATISTICS_BYTES, _LARGE_IMAGES_BYTES = 4096, 1 << 24, 1 << 20
#: images from 0 to 1 may leave that range a little, by resizing or added noise
_LOWEST, _HIGHEST = -0.5, 1.5


@dataclass(frozen=True)
class Transform:
    """
    Normalises a batch, and resizes it where the network needs another size than the data has.

    Training and testing use the same one. Images stay at their own size in memory; a batch is
    resized just before the network processes it. Grey images are repeated for a network of several
    channels.

    :param mean: one for each channel (or coordinate); none at all leaves batches as they are
    :param std: one for each channel (or coordinate)
    :param size: height and width of the network's input; ``None`` for points
    :param interpolation: ``"bilinear"`` or ``"bicubic"``
    :param crop: the central share of the image's side that the network sees, timm's ``crop_pct``
    """

    mean: tuple[float, ...]
    std: tuple[float, ...]
    size: tuple[int, int] | None = None
    interpolation: Literal["bilinear", "bicubic"] = "bilinear"
    crop: Annotated[float, Field(ge=0.1, le=1)] = 1.0

    def __call__(self, batch: Tensor) -> Tensor:
        """
        Return the input of the network, ``float32``.

        :param batch: ``uint8`` images from 0 to 255, floating-point images from 0 to 1, or
            ``float32`` points, on any device
        :raises UserError: if the images have another range
        """
        if not self.mean:
            return batch
        if batch.ndim == 4 and batch.shape[1] == 1:
            batch = batch.expand(-1, len(self.mean), -1, -1)
        x = to_float(batch, self.mean, self.std)
        if self.size is None:
            return x
        height, width = (math.floor(side / self.crop) for side in self.size)
        if tuple(x.shape[2:]) != (height, width):
            x = self._resized(x, (height, width))
        return x if (height, width) == self.size else transforms.center_crop(x, list(self.size))

    def _resized(self, x: Tensor, size: tuple[int, int]) -> Tensor:
        x = F.interpolate(x, size, mode=self.interpolation, antialias=True, align_corners=False)
        if self.interpolation == "bilinear":
            return x
        # at edges bicubic interpolation leaves the range from 0 to 1; images of bytes cannot
        black, white = (torch.full((1, len(self.mean), 1, 1), value) for value in (0.0, 1.0))
        lowest, highest = (to_float(each, self.mean, self.std).to(x) for each in (black, white))
        return x.clamp(lowest, highest)

    def description(self) -> dict[str, Any]:
        """Return the parameters, for hashes and records."""
        return asdict(self)


def to_float(batch: Tensor, mean: Sequence[float], std: Sequence[float]) -> Tensor:
    """
    Scale bytes to [0, 1], then subtract the mean and divide by the standard deviation.

    :param batch: ``uint8`` images, images from 0 to 1 of another type, or points
    :param mean: one for each channel (or coordinate)
    :param std: one for each channel (or coordinate)
    :return: ``float32`` of the same shape
    :raises UserError: if images that are not ``uint8`` exceed the range from 0 to 1 by far, or if
        ``mean`` and ``std`` do not fit
    """
    _check_range(batch)
    channels = batch.shape[1]
    if len(mean) != channels or len(std) != channels:
        raise UserError(
            f"mean and std must have {channels} values, one for each channel, "
            f"not {len(mean)} and {len(std)}."
        )
    shape = [1, channels] + [1] * (batch.ndim - 2)
    offset = torch.tensor(mean, dtype=torch.float32).view(shape)
    scale = torch.tensor(std, dtype=torch.float32).view(shape)
    if not (scale > 0).all():
        raise UserError(f"std must be positive, not {list(std)}.")
    if batch.dtype == torch.uint8:
        offset, scale = offset * 255, scale * 255
    return batch.float().sub(offset.to(batch.device)).div_(scale.to(batch.device))


def _check_range(batch: Tensor) -> None:
    """Refuse images on another scale: a network takes values of 255 for extreme certainty."""
    if batch.dtype == torch.uint8 or batch.ndim != 4 or not batch.numel():
        return
    low, high = torch.stack(batch.aminmax()).tolist()  # one transfer from a GPU, not two
    if not (low >= _LOWEST and high <= _HIGHEST):  # true for NaN
        raise UserError(
            f"The images are {batch.dtype} with values from {low:.4g} to {high:.4g}. Give uint8 "
            "images from 0 to 255, or floating-point images from 0 to 1 that are not normalised: "
            "divide by 255, or call .to(torch.uint8)."
        )


def channel_statistics(samples: Samples) -> tuple[tuple[float, ...], tuple[float, ...]]:
    """Return mean and standard deviation of each channel, on the scale of :func:`to_float`."""
    scale = 255.0 if samples.inputs.dtype == torch.uint8 else 1.0
    axes = [axis for axis in range(samples.inputs.ndim) if axis != 1]
    total = torch.zeros(samples.inputs.shape[1], dtype=torch.float64)
    squares = torch.zeros_like(total)
    size, rows = samples.inputs.shape[1:].numel(), _STATISTICS_CHUNK
    if size * rows > _STATISTICS_BYTES:  # values need eight times the memory of bytes
        rows = max(1, _LARGE_IMAGES_BYTES // size)
    for chunk in chunks(samples.inputs, rows):
        values = chunk.double() / scale
        total += values.sum(axes)
        squares += values.square().sum(axes)
    count = samples.inputs.shape.numel() // samples.inputs.shape[1]
    mean = total / count
    variance = (squares / count - mean.square()).clamp_min(0)
    return tuple(mean.tolist()), tuple(variance.sqrt().tolist())


def fit_images(
    samples: Samples, image_size: tuple[int, int] | None, channels: int | None
) -> Samples:
    """
    Bring images to a size and a number of channels.

    Images are scaled to cover ``image_size`` (antialiased, bilinear) and cropped at the centre;
    grey images become RGB by repetition, RGB images become grey by luminance.

    :param samples: the images
    :param image_size: height and width; unchanged if not given
    :param channels: 1 or 3; unchanged if not given
    :raises UserError: for points, for sizes below 1 and for other numbers of channels
    """
    shape = fitted_shape(samples, image_size, channels)
    if shape == tuple(samples.inputs.shape[1:]):
        return samples
    inputs = torch.empty((len(samples), *shape), dtype=torch.uint8)
    sources = chunks(samples.inputs, _RESIZE_CHUNK)
    for source, target in zip(sources, inputs.split(_RESIZE_CHUNK), strict=True):
        target.copy_(fit_batch(source, (shape[1], shape[2]), shape[0]))
    return replace(samples, inputs=inputs)


def fitted_shape(
    samples: Samples, image_size: tuple[int, int] | None, channels: int | None
) -> tuple[int, ...]:
    """Return the shape that :func:`fit_images` brings samples to; the arguments are the same."""
    if samples.inputs.ndim == 2:
        if image_size is not None or channels is not None:
            raise UserError(f"{samples.name} holds points, which have no image size or channels.")
        return tuple(samples.inputs.shape[1:])
    _, have, *size = samples.inputs.shape
    channels = channels or have
    if have != channels and {have, channels} != {1, 3}:
        raise UserError(f"{samples.name} has {have} channels and cannot be brought to {channels}.")
    return (channels, *(image_size or size))


def fit_batch(images: Tensor, size: tuple[int, int], channels: int) -> Tensor:
    """
    Return images of another size and number of channels.

    :param images: ``uint8``, :math:`N \\times C \\times H \\times W`
    :param size: height and width
    :param channels: 1 or 3
    """
    return _with_channels(_resized(images, size), channels)


def centre_box(height: int, width: int, size: tuple[int, int]) -> tuple[int, int, int, int]:
    """Return top, left, height and width of the largest central box with the shape of ``size``."""
    scale = min(height / size[0], width / size[1])
    rows, columns = max(1, round(size[0] * scale)), max(1, round(size[1] * scale))
    return (height - rows) // 2, (width - columns) // 2, rows, columns


def _resized(images: Tensor, size: tuple[int, int]) -> Tensor:
    top, left, height, width = centre_box(images.shape[2], images.shape[3], size)
    images = images[:, :, top : top + height, left : left + width]
    return transforms.resize(images, list(size), antialias=True)


def _with_channels(images: Tensor, channels: int) -> Tensor:
    if images.shape[1] == channels:
        return images
    if channels == 1:
        return transforms.rgb_to_grayscale(images)
    return images.expand(-1, channels, -1, -1)
