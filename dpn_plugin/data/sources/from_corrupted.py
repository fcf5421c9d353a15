"""``corrupted:SOURCE``: the images of any other source with noise, blur and other corruptions."""

from collections.abc import Callable
from dataclasses import dataclass
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
import torch
from PIL import Image

from dpn_plugin.data.corruptions import corrupt
from dpn_plugin.data.lazy_images import LazyImages, fitted
from dpn_plugin.data.loading import open_source
from dpn_plugin.data.samples import Samples
from dpn_plugin.data.shifts import read_corruptions, read_parameters, read_severities
from dpn_plugin.data.spec import SourceSpec
from dpn_plugin.errors import UserError

Read = Callable[[int], tuple[Image.Image, int]]


def load(
    argument: str,
    *,
    split: str | None,
    root: Path,
    base: str | Path | None = None,
    image_size: tuple[int, int] | None = None,
    channels: int | None = None,
    corruption: Any = "all",
    severity: Any = "all",
    parameters: Any = "auto",
    **options: Any,
) -> LazyImages:
    """
    Return the images of another source, corrupted; they are corrupted when they are read.

    Images are brought to the wanted size first, as those of ImageNet-C were. With several
    corruptions or severities, all images follow for each of them in turn. An image is corrupted
    the same way whatever is read before it.

    :param argument: the other source, e.g. ``sklearn:digits``
    :param split: of the other source
    :param root: folder of downloaded data sets
    :param base: where relative paths start; then ``root``
    :param image_size: height and width of the corrupted images
    :param channels: 1 or 3
    :param corruption: ``noise``, ``blur``, ``contrast``, ``jpeg`` or ``brightness``, several of
        them, or ``all``
    :param severity: 1 to 5, several of them, or ``all``
    :param parameters: ``cifar``, ``imagenet``, or ``auto``: by the size of the image
    :param options: of the other source
    :raises UserError: if the other source is unknown or holds points, or an option is wrong
    """
    name = f"corrupted:{argument}"
    given = {"corruption": corruption, "severity": severity, "parameters": parameters}
    kinds = list(product(read_corruptions(given), read_severities(given)))
    spec = SourceSpec.parse({"source": argument, "split": split, "options": options}, name)
    hints = {"base": base, "image_size": image_size, "channels": channels}
    inner = open_source(spec, Path(root), hints)
    read = inner.read if isinstance(inner, LazyImages) else _SamplesReader(inner)
    labels = inner.labels if inner.labels is None else inner.labels.repeat(len(kinds))
    return LazyImages(
        _CorruptedReader(read, len(inner), kinds, read_parameters(given), image_size, channels),
        len(inner) * len(kinds),
        name,
        labels,
        inner.classes,
        inner.unlabelled if isinstance(inner, LazyImages) else "",
    )


@dataclass(frozen=True)
class _CorruptedReader:
    """
    Reads and corrupts the image of a position.

    :param read: reads a clean image and its label
    :param count: number of clean images
    :param kinds: corruption and severity of the first ``count`` positions, of the next, and so on
    :param parameters: which published parameters are taken
    :param image_size: height and width; those of the image if ``None``
    :param channels: 1 or 3; those of the image if ``None``
    """

    read: Read
    count: int
    kinds: list[tuple[str, int]]
    parameters: str
    image_size: tuple[int, int] | None
    channels: int | None

    def __call__(self, index: int) -> tuple[Image.Image, int]:
        kind, position = divmod(index, self.count)
        image, label = self.read(position)
        pixels = np.array(fitted(image, self.image_size, self.channels))
        return Image.fromarray(corrupt(pixels, *self.kinds[kind], self.parameters)), label


@dataclass(frozen=True)
class _SamplesReader:
    """Reads an image of samples that are decoded already, and its label."""

    samples: Samples

    def __post_init__(self) -> None:
        if self.samples.inputs.dtype != torch.uint8:
            raise UserError(f"{self.samples.name} holds points; only images can be corrupted.")

    def __call__(self, index: int) -> tuple[Image.Image, int]:
        pixels = self.samples.rows(torch.tensor([index]))[0].numpy()
        pixels = pixels[0] if len(pixels) == 1 else pixels.transpose(1, 2, 0)
        return Image.fromarray(np.ascontiguousarray(pixels)), int(self.samples.labels[index])
