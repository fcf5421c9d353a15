"""PixMix: training images that are mixed with fractals and with augmented copies of themselves."""

import math
from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor
from torch.nn import functional as F
from torchvision.transforms.v2.functional import equalize

from dpn_plugin.data.fractals import fractal_images
from dpn_plugin.data.mixed import Mixed, check_count, check_positive, numpy_generator

#: the augmentations of the authors; the first five move pixels
_MOVES = ("rotate", "shear_x", "shear_y", "translate_x", "translate_y")
_COLOURS = ("autocontrast", "equalize", "posterize", "solarize")
#: the smallest base of a power: a negative power of zero would be infinite
_TINY = 1e-37


@dataclass(frozen=True)
class PixMix:
    """
    Mixes images with fractals, from *PixMix: Dreamlike Pictures Comprehensively Improve Safety
    Measures*.

    An image, or an augmented copy of it, is mixed up to ``k`` times with another augmented copy or
    with a fractal, by adding or by multiplying. The label stays.

    The fractals are generated from a fixed seed, nothing is downloaded. The authors also mix with
    visualisations of features, which need a trained network; those are left out.

    :param k: largest number of mixings of an image; the authors' 4
    :param beta: larger values mix less; the authors' 3
    :param severity: of the augmentations; the authors' 3
    :param fractals: number of fractals
    """

    k: int = 4
    beta: float = 3.0
    severity: float = 3.0
    fractals: int = 128

    def __post_init__(self) -> None:
        check_count("k", self.k)
        check_count("fractals", self.fractals)
        check_positive("beta", self.beta)
        check_positive("severity", self.severity)

    def why_not(self, kind: str) -> str | None:
        """
        Return why samples cannot be mixed, ``None`` if they can.

        :param kind: ``"images"``, ``"points"`` or ``"features"``
        """
        if kind == "features":
            return (
                "it changes images in every epoch, and the features of a frozen network are fixed"
            )
        return None if kind == "images" else "it mixes images with fractals, not points"

    def __call__(
        self, inputs: Tensor, labels: Tensor, num_classes: int, generator: torch.Generator
    ) -> Mixed:
        """
        Return the batch with mixed images; the labels remain the targets.

        :param inputs: images, ``uint8`` or from 0 to 1, :math:`N \\times C \\times H \\times W`
        :param labels: not used
        :param num_classes: not used
        :param generator: source of the random numbers
        """
        rng = numpy_generator(generator)
        images = inputs if inputs.is_floating_point() else inputs.float() / 255
        mixed = self._mixed(images, self._pictures(images, rng), rng)
        if inputs.is_floating_point():
            return Mixed(mixed)
        return Mixed((255 * mixed).round().to(inputs.dtype))

    def _pictures(self, images: Tensor, rng: np.random.Generator) -> Tensor:
        """Return a fractal for each image, half of them mirrored."""
        count, channels, height, width = images.shape
        known = fractal_images(self.fractals, (height, width), channels)
        chosen = known[torch.from_numpy(rng.integers(len(known), size=count))].to(images.device)
        return torch.where(_coins(rng, images), chosen.flip(3), chosen)

    def _mixed(self, images: Tensor, pictures: Tensor, rng: np.random.Generator) -> Tensor:
        mixed = torch.where(_coins(rng, images), self._augmented(images, rng), images)
        rounds = torch.from_numpy(rng.integers(self.k + 1, size=len(images))).view(-1, 1, 1, 1)
        for done in range(self.k):
            other = torch.where(_coins(rng, images), self._augmented(images, rng), pictures)
            a, b = self._weights(images, rng)
            chosen = torch.where(
                _coins(rng, images), added(mixed, other, a, b), multiplied(mixed, other, a, b)
            )
            mixed = torch.where((rounds > done).to(images.device), chosen.clamp(0, 1), mixed)
        return mixed

    def _weights(self, images: Tensor, rng: np.random.Generator) -> tuple[Tensor, Tensor]:
        """Return the weights of both images: below one, or above one and below zero."""
        count = len(images)
        large, small = rng.beta(self.beta, 1, count), rng.beta(1, self.beta, (3, count))
        between = rng.random(count) < 0.5
        a, b = np.where(between, large, 1 + small[0]), np.where(between, small[1], -small[2])
        return _per_image(a, images), _per_image(b, images)

    def _augmented(self, images: Tensor, rng: np.random.Generator) -> Tensor:
        """Return images with one augmentation each."""
        names = np.array(_MOVES + _COLOURS)[rng.integers(len(_MOVES + _COLOURS), size=len(images))]
        levels = rng.uniform(0.1, max(0.1, self.severity), len(images)) / 10
        signs = np.where(rng.random(len(images)) < 0.5, 1.0, -1.0)
        result = _moved(images, names, levels * signs)
        for name in _COLOURS:
            rows = torch.from_numpy(np.flatnonzero(names == name)).to(images.device)
            if len(rows):
                level = _per_image(levels[names == name], images)
                result = result.index_copy(0, rows, _recoloured(name, images[rows], level))
        return result


def added(first: Tensor, second: Tensor, a: Tensor, b: Tensor) -> Tensor:
    """Return the weighted sum of two images, of values from -1 to 1."""
    return (a * (2 * first - 1) + b * (2 * second - 1) + 1) / 2


def multiplied(first: Tensor, second: Tensor, a: Tensor, b: Tensor) -> Tensor:
    """Return the weighted geometric mean of two images, of values from 0 to 2."""
    return (2 * first) ** a * (2 * second).clamp(min=_TINY) ** b / 2


def _moved(images: Tensor, names: np.ndarray, levels: np.ndarray) -> Tensor:
    """Return images rotated (up to 30 degrees), sheared (0.3) or shifted (a third of the size)."""
    theta = np.tile(np.eye(2, 3), (len(images), 1, 1))
    angle = np.where(names == "rotate", levels * math.radians(30), 0.0)
    theta[:, 0, 0] = theta[:, 1, 1] = np.cos(angle)
    theta[:, 0, 1] = np.where(names == "shear_x", 0.3 * levels, -np.sin(angle))
    theta[:, 1, 0] = np.where(names == "shear_y", 0.3 * levels, np.sin(angle))
    theta[:, 0, 2] = np.where(names == "translate_x", 2 / 3 * levels, 0.0)
    theta[:, 1, 2] = np.where(names == "translate_y", 2 / 3 * levels, 0.0)
    matrices = torch.from_numpy(theta).to(images)
    grid = F.affine_grid(matrices, list(images.shape), align_corners=False)
    return F.grid_sample(images, grid, align_corners=False)


def _recoloured(name: str, images: Tensor, level: Tensor) -> Tensor:
    if name == "autocontrast":
        lowest, highest = images.amin((2, 3), keepdim=True), images.amax((2, 3), keepdim=True)
        spread = highest - lowest
        return torch.where(spread > 0, (images - lowest) / spread.clamp(min=_TINY), images)
    if name == "equalize":
        return equalize((255 * images).round().to(torch.uint8)).to(images) / 255
    if name == "posterize":  # to four bits and fewer
        step = 2 ** (4 + (4 * level).floor())
        return ((255 * images / step).floor() * step) / 255
    return torch.where(255 * images >= 256 - 256 * level, 1 - images, images)


def _coins(rng: np.random.Generator, images: Tensor) -> Tensor:
    """Return a random truth value for each image, as N x 1 x 1 x 1."""
    return torch.from_numpy(rng.random(len(images)) < 0.5).view(-1, 1, 1, 1).to(images.device)


def _per_image(values: np.ndarray, images: Tensor) -> Tensor:
    return torch.from_numpy(values).view(-1, 1, 1, 1).to(images)
