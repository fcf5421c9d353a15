"""Converts a data set object of a host library: at once where it holds arrays, else lazily."""

import operator
import os
from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np
import torch
from PIL import Image
from torch import Tensor

from dpn_plugin.data.image_files import open_image
from dpn_plugin.data.lazy_images import LazyImages
from dpn_plugin.data.origins import FileList, FileOrigin
from dpn_plugin.data.samples import MAX_SAMPLES, Samples
from dpn_plugin.errors import UserError


def to_samples(dataset: Any, source: str) -> Samples | LazyImages:
    """
    Return the images of a host's data set.

    :param dataset: has an item ``(image, label)`` for every position
    :param source: its name in messages
    """
    check_length(dataset, source)
    labels, classes = _labels(dataset), _classes(dataset)

    read = partial(_item, dataset, source)
    pixels = _pixels(dataset)
    if len(dataset) and labels is not None:
        image, label = read(0)
        if label != labels[0]:
            labels = None
        # the arrays are no part of the host's interface: use them only if they agree with its items
        elif pixels is not None and _same(pixels[0], image):
            return Samples(pixels, labels, source, classes)
    origin = _origin(dataset, read) if len(dataset) else None
    return LazyImages(read, len(dataset), source, labels, classes, origin=origin)


def check_length(dataset: Any, source: str) -> None:
    """
    Check the number of images, which options may have set.

    :param dataset: a host's data set
    :param source: its name in messages
    :raises UserError: if it is out of range
    """
    try:
        fits = len(dataset) <= MAX_SAMPLES
    except (ValueError, OverflowError):  # len() raises below zero and above sys.maxsize
        fits = False
    if not fits:
        raise UserError(f"{source} must have between 0 and {MAX_SAMPLES:,} images.")


def _item(dataset: Any, source: str, index: int) -> tuple[Image.Image, int]:
    try:
        item = dataset[index]
        if isinstance(item, tuple) and isinstance(item[0], Image.Image):
            item[0].load()
    # a damaged file makes Pillow raise all kinds of errors, SyntaxError and struct.error too
    except Exception as error:
        files = _files(dataset)
        name = f"image {index}" if files is None else files[index]
        raise UserError(f"{source}: {name} cannot be read: {error}") from error
    try:
        image, label = item
        image = Image.fromarray(image) if isinstance(image, np.ndarray) else image
        if isinstance(image, Image.Image):
            return image, operator.index(label)
    except (TypeError, ValueError):
        pass  # not a pair, or the label is not a number
    raise UserError(f"{source} is not a set of images with one label each, so it cannot be used.")


def _labels(dataset: Any) -> Tensor | None:
    for name in ("targets", "labels", "_labels"):
        values = getattr(dataset, name, None)
        if isinstance(values, list | np.ndarray | Tensor) and len(values) == len(dataset):
            array = np.asarray(values)
            if array.ndim == 1 and array.dtype.kind in "iu":
                return torch.from_numpy(array.astype(np.int64))
    return None


def _classes(dataset: Any) -> tuple[str, ...]:
    names = getattr(dataset, "classes", None) or ()
    if not isinstance(names, list | tuple):
        return ()
    # ImageNet has several names for a class; the first is the usual one
    return tuple(str(name[0]) if isinstance(name, tuple) else str(name) for name in names)


def _pixels(dataset: Any) -> Tensor | None:
    data = getattr(dataset, "data", None)
    if not isinstance(data, np.ndarray | Tensor) or len(data) != len(dataset):
        return None
    pixels = torch.as_tensor(data)
    if pixels.dtype != torch.uint8 or pixels.ndim not in (3, 4):
        return None
    if pixels.ndim == 3:
        return pixels[:, None]
    return pixels.permute(0, 3, 1, 2).contiguous() if pixels.shape[3] in (1, 3) else pixels


def _same(pixels: Tensor, image: Image.Image) -> bool:
    expected = np.array(image)
    expected = expected[None] if expected.ndim == 2 else expected.transpose(2, 0, 1)
    return np.array_equal(pixels.numpy(), expected)


def _files(dataset: Any) -> list[str] | None:
    """Return the file of each image, where the host keeps a list of them."""
    for name in ("samples", "imgs", "_samples", "_image_files", "_images", "images"):
        values = getattr(dataset, name, None)
        if isinstance(values, list) and len(values) == len(dataset):
            paths = [each[0] if isinstance(each, tuple) else each for each in values]
            if all(isinstance(each, str | os.PathLike) for each in paths):
                return [os.fspath(each) for each in paths]
    return None


def _origin(dataset: Any, read: Callable[[int], tuple[Image.Image, int]]) -> FileOrigin | None:
    """Return the files of the images; ``None`` if they are not what the host reads."""
    files = _files(dataset)
    if files is None:
        return None
    # the list is no part of the host's interface: use it only if the first and last image agree
    for index in (0, len(files) - 1):
        try:
            image, own = read(index)[0], open_image(files[index])
        except UserError:
            return None
        if not np.array_equal(np.array(image), np.array(own.convert(image.mode))):
            return None
    return FileOrigin(FileList(files))
