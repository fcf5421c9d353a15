"""Images that are selected first and decoded afterwards."""

from collections.abc import Callable
from dataclasses import dataclass
from math import prod

import numpy as np
import PIL
import torch
from PIL import Image
from torch import Tensor

from dpn_plugin.data.inputs import StreamedImages
from dpn_plugin.data.origins import Origin
from dpn_plugin.data.samples import Samples, check_memory
from dpn_plugin.data.transform import centre_box
from dpn_plugin.errors import UserError

# a palette may hold colours, and an image of 16 bits is grey
_GREY_MODES = {"1", "L", "LA", "I", "I;16", "I;16B", "I;16L", "F"}
_SIXTEEN_BITS = {"I;16", "I;16B", "I;16L"}


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
    :param origin: the files of the images, where they are known
    """

    read: Callable[[int], tuple[Image.Image, int]]
    count: int
    name: str
    labels: Tensor | None = None
    classes: tuple[str, ...] = ()
    unlabelled: str = ""
    origin: Origin | None = None

    def __len__(self) -> int:
        return self.count

    def read_labels(self) -> Tensor:
        """Return every label; reads all images if the labels are not known without."""
        if self.labels is not None:
            return self.labels
        labels = [self.read(index)[1] for index in range(self.count)]
        return torch.tensor(labels, dtype=torch.int64)

    def decoder(
        self,
        indices: Tensor,
        image_size: tuple[int, int] | None,
        channels: int | None,
        skip_damaged: bool = False,
    ) -> "ImageDecoder":
        """
        Return what decodes the images at these positions.

        :param indices: positions of the images, at least one
        :param image_size: height and width; images are scaled to cover it and cropped at the centre
        :param channels: 1 or 3; those of the first image if not given
        :param skip_damaged: if the first image cannot be read, take size and channels of the next
        """
        if image_size is not None and channels is not None:
            mode = "L" if channels == 1 else "RGB"
            return ImageDecoder(self, indices.numpy(), mode, image_size, True)
        first = self._first(indices.tolist(), skip_damaged)
        mode = _mode(first, channels)
        size = image_size or (first.height, first.width)
        return ImageDecoder(self, indices.numpy(), mode, size, image_size is not None)

    def decode(
        self, indices: Tensor, image_size: tuple[int, int] | None, channels: int | None
    ) -> Samples:
        """
        Return the images at these positions as samples in memory.

        :param indices: positions to decode, at least one
        :param image_size: height and width; images are scaled to cover it and cropped at the centre
        :param channels: 1 or 3; those of the first image if not given
        :raises UserError: if there is no ``image_size`` and the images differ in size
        """
        decoder = self.decoder(indices, image_size, channels)
        shape = (len(indices), *decoder.image_shape)
        check_memory(prod(shape), self.name)
        inputs = torch.empty(shape, dtype=torch.uint8)
        labels = torch.empty(len(indices), dtype=torch.int64)
        for row in range(len(indices)):
            inputs[row], labels[row] = decoder.decode(row)
        return Samples(inputs, labels, self.name, self.classes)

    def _first(self, indices: list[int], skip_damaged: bool) -> Image.Image:
        for index in indices:
            try:
                return self.read(index)[0]
            except UserError:
                if not skip_damaged:
                    raise
        raise UserError(f"{self.name} has no image that can be read.")


@dataclass(frozen=True, eq=False)
class ImageDecoder:
    """
    Decodes the chosen images of a source to one size and one number of channels.

    :param images: the source
    :param indices: the positions in it, ``int64``
    :param mode: ``"L"`` or ``"RGB"``
    :param size: height and width
    :param resizes: bring images of other sizes to this one; otherwise they are refused
    """

    images: LazyImages
    indices: np.ndarray
    mode: str
    size: tuple[int, int]
    resizes: bool

    @property
    def image_shape(self) -> tuple[int, int, int]:
        """Channels, height and width."""
        return (1 if self.mode == "L" else 3, *self.size)

    @property
    def description(self) -> str:
        """How images are decoded: a change of it changes pixels."""
        return f"{self.mode} {self.size[0]}x{self.size[1]} Pillow {PIL.__version__}"

    def states(self) -> list[bytes]:
        """Return the state of each image, nothing where it is not known."""
        if self.images.origin is None:
            return [b""] * len(self.indices)
        return self.images.origin.states(self.indices.tolist())

    def subset(self, positions: Tensor) -> "ImageDecoder":
        """Return what decodes the images at these positions of this one."""
        indices = self.indices[positions.numpy()]
        return ImageDecoder(self.images, indices, self.mode, self.size, self.resizes)

    def streamed(self, workers: int, hashes: np.ndarray | None = None) -> StreamedImages:
        """Return the images, to be decoded by so many worker processes."""
        return StreamedImages(
            len(self.indices), self.image_shape, hashes=hashes, decode=self, workers=workers
        )

    def __call__(self, position: int) -> Tensor:
        """Return the pixels of an image, :math:`C \\times H \\times W` bytes."""
        return self.decode(position)[0]

    def decode(self, position: int) -> tuple[Tensor, int]:
        """
        Return the pixels and the label of an image.

        :param position: among the chosen images
        :raises UserError: if it cannot be read, has another size, or has changed
        """
        index = int(self.indices[position])
        image, label = self.images.read(index)
        height, width = self.size
        if not self.resizes and image.size != (width, height):
            raise self._sizes_differ(image)
        try:
            pixels = _pixels(image, self.mode, (width, height))
        except (ValueError, OSError) as error:  # Pillow does not convert between all modes
            name = self.images.name
            raise UserError(f"{name}: image {index} cannot be used: {error}") from error
        if self.images.origin is not None:
            self.images.origin.check(index)
        return pixels, label

    def _sizes_differ(self, image: Image.Image) -> UserError:
        return UserError(
            f"{self.images.name} has images of different sizes (width x height "
            f"{self.size[1]}x{self.size[0]} and {image.width}x{image.height}). Give one size for "
            "all: --set image_size=32 for dpn train, input_size = [3, 32, 32] in a suite, "
            "image_size=(32, 32) in Python."
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
    image = _eight_bits(image).convert(_mode(image, channels))
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


def _pixels(image: Image.Image, mode: str, size: tuple[int, int]) -> Tensor:
    pixels = torch.from_numpy(np.array(fitted(image, size[::-1], 1 if mode == "L" else 3)))
    return pixels[None] if pixels.ndim == 2 else pixels.permute(2, 0, 1)


def _eight_bits(image: Image.Image) -> Image.Image:
    """Return an image of 16 bits with 8: Pillow would cut off all values above 255."""
    # older versions of Pillow give a PNG file of 16 bits the mode of 32
    if image.mode not in _SIXTEEN_BITS and (image.mode, image.format) != ("I", "PNG"):
        return image
    return Image.fromarray((np.asarray(image) >> 8).astype(np.uint8))
