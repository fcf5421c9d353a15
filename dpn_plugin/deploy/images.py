"""Images of all kinds as batches of bytes, prepared in the same way as the training data."""

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
import torch
from PIL import Image
from torch import Tensor

from dpn_plugin.data import LazyImages
from dpn_plugin.errors import UserError, UserTypeError

#: what a bundle takes: one image or several, or a batch
Images = Image.Image | np.ndarray | Tensor | Sequence[Any]


def image_batches(images: Images, shape: Sequence[int], size: int) -> Iterator[Tensor]:
    """
    Yield batches for the transform of a run: ``uint8`` images, or what was given as floats.

    :param images: an image or several: PIL images; ``uint8`` arrays H x W or H x W x C, or
        N x H x W x C; ``uint8`` tensors C x H x W or N x C x H x W; float tensors from 0 to 1, or
        points, that have the shape of the network's inputs already
    :param shape: of one input, C x H x W or D
    :param size: images in a batch
    :raises UserError: if an image has another type or form
    """
    if isinstance(images, Tensor) and images.is_floating_point():
        yield from _as_given(images, tuple(shape)).split(size)
        return
    if len(shape) != 3:
        raise UserError(f"The bundle takes points as a float tensor N x {shape[0]}, not images.")
    if isinstance(images, Tensor) and images.ndim == 4 and tuple(images.shape[1:]) == tuple(shape):
        yield from _check_bytes(images).split(size)
        return
    several = _several(images)
    for start in range(0, len(several), size):
        yield _decoded([_as_pil(each) for each in several[start : start + size]], shape)


def _as_given(images: Tensor, shape: tuple[int, ...]) -> Tensor:
    images = images[None] if images.ndim == len(shape) else images
    if tuple(images.shape[1:]) != shape:
        raise UserError(
            f"A float tensor must have the shape of the inputs, N x {' x '.join(map(str, shape))}, "
            f"not {tuple(images.shape)}; uint8 images of any size are resized."
        )
    return images.float()


def _several(images: Images) -> Any:
    if isinstance(images, Image.Image):
        return [images]
    if isinstance(images, np.ndarray):
        return images if images.ndim == 4 else [images]
    if isinstance(images, Tensor):
        return images if images.ndim == 4 else [images]
    if isinstance(images, Sequence) and not isinstance(images, str | bytes):
        return images
    raise UserTypeError(f"images must be PIL images, arrays or tensors, not {_kind(images)}.")


def _as_pil(image: Any) -> Image.Image:
    if isinstance(image, Image.Image):
        return image
    if isinstance(image, Tensor):
        if image.ndim != 3:
            raise UserError(f"A tensor must be C x H x W, not of shape {tuple(image.shape)}.")
        image = _check_bytes(image).permute(1, 2, 0).cpu().numpy()
    if not isinstance(image, np.ndarray):
        raise UserTypeError(f"images must be PIL images, arrays or tensors, not {_kind(image)}.")
    if image.dtype != np.uint8:
        raise UserTypeError(f"An array must be uint8 from 0 to 255, not {image.dtype}.")
    if image.ndim not in (2, 3) or (image.ndim == 3 and image.shape[2] not in (1, 3, 4)):
        raise UserError(f"An array must be H x W or H x W x C, not of shape {image.shape}.")
    flat = image[:, :, 0] if image.ndim == 3 and image.shape[2] == 1 else image
    return Image.fromarray(np.ascontiguousarray(flat))


def _decoded(images: list[Image.Image], shape: Sequence[int]) -> Tensor:
    channels, height, width = shape
    lazy = LazyImages(lambda index: (images[index], -1), len(images), "images")
    return lazy.decode(torch.arange(len(images)), (height, width), channels).all_rows()


def _check_bytes(images: Tensor) -> Tensor:
    if images.dtype != torch.uint8:
        raise UserTypeError(f"A tensor must be uint8 or floating point, not {images.dtype}.")
    return images


def _kind(value: Any) -> str:
    return type(value).__name__
