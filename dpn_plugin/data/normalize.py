"""From bytes to the numbers that a network takes."""

from collections.abc import Sequence

import torch
from torch import Tensor

from dpn_plugin.data.samples import Samples
from dpn_plugin.errors import UserError

__all__ = ["channel_statistics", "to_float"]

_CHUNK = 4096


def to_float(batch: Tensor, mean: Sequence[float], std: Sequence[float]) -> Tensor:
    """
    Scale bytes to [0, 1], then subtract the mean and divide by the standard deviation.

    :param batch: ``uint8`` images, or points or images that are ``float32`` already
    :param mean: one for each channel (or coordinate)
    :param std: one for each channel (or coordinate)
    :return: ``float32`` of the same shape
    """
    channels = batch.shape[1]
    if len(mean) != channels or len(std) != channels:
        raise UserError(
            f"mean and std must have {channels} values, one for each channel, "
            f"not {len(mean)} and {len(std)}."
        )
    shape = [1, channels] + [1] * (batch.ndim - 2)
    centre = torch.tensor(mean, dtype=torch.float32).view(shape)
    scale = torch.tensor(std, dtype=torch.float32).view(shape)
    if not (scale > 0).all():
        raise UserError(f"std must be positive, not {list(std)}.")
    if batch.dtype == torch.uint8:
        centre, scale = centre * 255, scale * 255
    return batch.float().sub(centre.to(batch.device)).div_(scale.to(batch.device))


def channel_statistics(samples: Samples) -> tuple[tuple[float, ...], tuple[float, ...]]:
    """:return: mean and standard deviation of each channel, on the scale of :func:`to_float`"""
    scale = 255.0 if samples.inputs.dtype == torch.uint8 else 1.0
    axes = [axis for axis in range(samples.inputs.ndim) if axis != 1]
    total = torch.zeros(samples.inputs.shape[1], dtype=torch.float64)
    squares = torch.zeros_like(total)
    for chunk in samples.inputs.split(_CHUNK):
        values = chunk.double() / scale
        total += values.sum(axes)
        squares += values.square().sum(axes)
    count = samples.inputs.numel() // samples.inputs.shape[1]
    mean = total / count
    variance = (squares / count - mean.square()).clamp_min(0)
    return tuple(mean.tolist()), tuple(variance.sqrt().tolist())
