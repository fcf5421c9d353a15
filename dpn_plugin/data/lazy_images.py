"""Images that are selected first and decoded afterwards."""

from collections.abc import Callable
from dataclasses import dataclass
from math import prod

import numpy as np
import torch
from PIL import Image
from torch import Tensor

from dpn_plugin.data.samples import Samples, check_memory
from dpn_plugin.data.transform import centre_box
from dpn_plugin.errors import UserError

_GREY_MODES = {"1", "L", "LA", "I", "I;16", "F"}


@dataclass(frozen=True, eq=False)
class LazyImages:
    """
    A data set whose images are read one by one.

    A source returns this instead of :class:`Samples` where decoding is the expensive part: class
    filter and limit are applied first, and every image is resized as it is decoded, so 25,000 of a
    million photographs cost the time and the memory of 25,000 thumbnails.

    :param read: returns image and label of a position
    :param count: number of images
    :param name: the name of the data in error messages
    :param labels: ``int64`` labels where they are known without reading the images
    :param classes: the name of each label, in order
    :param unlabelled: why the images have no labels, and how to give them some, for messages
    """

    read: Callable[[int], tuple[Image.Image, int]]
    count: int
    name: str
    labels: Tensor | None = None
    classes: tuple[str, ...] = ()
    unlabelled: str = ""

    def __len__(self) -> int:
        return self.count

    def read_labels(self) -> Tensor:
        """Return every label; reads all images if the labels are not known without."""
        if self.labels is not None:
            return self.labels
        labels = [self.read(index)[1] for index in range(self.count)]
        return torch.tensor(labels, dtype=torch.int64)

    def decode(
        self, indices: Tensor, image_size: tuple[int, int] | None, channels: int | None
    ) -> Samples:
        """
        Return the images at these positions as samples.

        :param indices: positions to decode, at least one
        :param image_size: height and width; images are scaled to cover it and cropped at the centre
        :param channels: 1 or 3; those of the first image if not given
        :raises UserError: if there is no ``image_size`` and the images differ in size
        """
        first, _ = self.read(int(indices[0]))
        height, width = image_size or (first.height, first.width)
        channels = 1 if _mode(first, channels) == "L" else 3
        shape = (len(indices), channels, height, width)
        check_memory(prod(shape), self.name)
        inputs = torch.empty(shape, dtype=torch.uint8)
        labels = torch.empty(len(indices), dtype=torch.int64)
        for row, index in enumerate(indices.tolist()):
            image, label = self.read(index)
            if image_size is None and image.size != (width, height):
                raise self._sizes_differ(image, (width, height))
            try:
                inputs[row] = _pixels(image, channels, (height, width))
            except (ValueError, OSError) as error:  # Pillow does not convert between all modes
                raise UserError(f"{self.name}: image {index} cannot be used: {error}") from error
            labels[row] = label
        return Samples(inputs, labels, self.name, self.classes)

    def _sizes_differ(self, image: Image.Image, size: tuple[int, int]) -> UserError:
        return UserError(
            f"{self.name} has images of different sizes (width x height {size[0]}x{size[1]} and "
            f"{image.width}x{image.height}). Give one size for all: --set image_size=32 for dpn "
            "train, input_size = [3, 32, 32] in a suite, image_size=(32, 32) in Python."
        )


def fitted(
    image: Image.Image, image_size: tuple[int, int] | None, channels: int | None
) -> Image.Image:
    """
    Return an image with the given size and channels, as :meth:`LazyImages.decode` does.

    :param image: of any size and mode
    :param image_size: height and width; unchanged if not given
    :param channels: 1 or 3; grey images stay grey and all others become RGB if not given
    """
    size = image.size if image_size is None else image_size[::-1]
    image = image.convert(_mode(image, channels))
    if image.size == size:
        return image
    top, left, height, width = centre_box(image.height, image.width, size[::-1])
    # crop first: resize(box=...) would blend in pixels from outside the box
    image = image.crop((left, top, left + width, top + height))
    return image.resize(size, Image.Resampling.BILINEAR)


def _mode(image: Image.Image, channels: int | None) -> str:
    if channels is None:
        return "L" if image.mode in _GREY_MODES else "RGB"
    return "L" if channels == 1 else "RGB"


def _pixels(image: Image.Image, channels: int, size: tuple[int, int]) -> Tensor:
    pixels = torch.from_numpy(np.array(fitted(image, size, channels)))
    return pixels[None] if pixels.ndim == 2 else pixels.permute(2, 0, 1)
