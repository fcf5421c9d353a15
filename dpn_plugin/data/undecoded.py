"""Images that are still files: chosen first, decoded after."""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import torch
from PIL import Image
from torch import Tensor

from dpn_plugin.data.resize import centre
from dpn_plugin.data.room import check_room
from dpn_plugin.data.samples import Samples
from dpn_plugin.errors import UserError

__all__ = ["Undecoded"]

_GREY_MODES = {"1", "L", "LA", "I", "I;16", "F"}


@dataclass(frozen=True, eq=False)
class Undecoded:
    """
    A data set whose images are read one by one.

    A source gives this instead of :class:`Samples` where decoding is the costly part: class filter
    and limit come first, and every image is brought to its final size as it is decoded, so 25,000
    of a million photographs cost the time and the memory of 25,000 thumbnails.

    :param read: gives image and label of a position
    :param count: how many images there are
    :param name: what error messages call the data
    :param labels: ``int64`` labels where they are known without reading the images
    :param classes: the name of each label, in order
    """

    read: Callable[[int], tuple[Image.Image, int]]
    count: int
    name: str
    labels: Tensor | None = None
    classes: tuple[str, ...] = ()

    def __len__(self) -> int:
        return self.count

    def all_labels(self) -> Tensor:
        """:return: every label; reads the images where there is no other way"""
        if self.labels is not None:
            return self.labels
        labels = [self.read(index)[1] for index in range(self.count)]
        return torch.tensor(labels, dtype=torch.int64)

    def decoded(
        self, indices: Tensor, image_size: tuple[int, int] | None, channels: int | None
    ) -> Samples:
        """
        :param indices: positions to decode, at least one
        :param image_size: height and width; scaled to cover it and cut at the centre
        :param channels: 1 or 3; those of the first image if not given
        :raises UserError: if there is no ``image_size`` and the images differ in size
        """
        first, _ = self.read(int(indices[0]))
        height, width = image_size or (first.height, first.width)
        mode = _mode(first, channels)
        check_room(len(indices) * (1 if mode == "L" else 3) * height * width, self.name)
        inputs = torch.empty(
            (len(indices), 1 if mode == "L" else 3, height, width), dtype=torch.uint8
        )
        labels = torch.empty(len(indices), dtype=torch.int64)
        for row, index in enumerate(indices.tolist()):
            image, label = self.read(index)
            if image_size is None and image.size != (width, height):
                raise self._sizes_differ(image, (width, height))
            try:
                inputs[row] = _pixels(image, mode, (width, height))
            except (ValueError, OSError) as error:  # Pillow cannot turn every mode into every other
                raise UserError(f"{self.name}: image {index} cannot be used: {error}") from error
            labels[row] = label
        return Samples(inputs, labels, self.name, self.classes)

    def _sizes_differ(self, image: Image.Image, size: tuple[int, int]) -> UserError:
        return UserError(
            f"{self.name} has images of different sizes (width x height {size[0]}x{size[1]} and "
            f"{image.width}x{image.height}): give the size that they are to be brought to."
        )


def _mode(image: Image.Image, channels: int | None) -> str:
    if channels is None:
        return "L" if image.mode in _GREY_MODES else "RGB"
    return "L" if channels == 1 else "RGB"


def _pixels(image: Image.Image, mode: str, size: tuple[int, int]) -> Tensor:
    image = image.convert(mode)
    if image.size != size:
        top, left, height, width = centre(image.height, image.width, size[::-1])
        # cut first: resize(box=...) would let pixels from outside the box bleed in
        image = image.crop((left, top, left + width, top + height))
        image = image.resize(size, Image.Resampling.BILINEAR)
    pixels = torch.from_numpy(np.array(image))
    return pixels[None] if pixels.ndim == 2 else pixels.permute(2, 0, 1)
