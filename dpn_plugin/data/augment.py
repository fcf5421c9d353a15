"""Random shifts, small rotations and flips of a whole batch at once."""

import math
from dataclasses import dataclass
from typing import Literal

import torch
from torch import Tensor
from torch.nn import functional as F

from dpn_plugin.errors import UserError, choices

#: how grid_sample calls each kind of fill
_PADDING_MODES = {"nearest": "border", "reflect": "reflection", "zero": "zeros"}


@dataclass(frozen=True)
class Augmentation:
    """
    A random shift, rotation and flip of every image, applied in one resampling.

    Without rotation, images move by whole pixels and keep their values.

    :param shift: largest shift in each direction, as a share of the image's size
    :param rotation: largest rotation in either direction, in degrees
    :param flip: mirror half of the images left to right; not for digits and letters
    :param fill: pixels from outside the image: ``"nearest"`` repeats its border, ``"reflect"``
        mirrors it at its edge (the border pixel occurs twice), ``"zero"`` is black
    """

    shift: float = 0.0
    rotation: float = 0.0
    flip: bool = False
    fill: Literal["nearest", "reflect", "zero"] = "nearest"

    def __post_init__(self) -> None:
        if not 0 <= self.shift <= 1:
            raise UserError(f"shift must be between 0 and 1, not {self.shift}.")
        if not 0 <= self.rotation <= 180:
            raise UserError(f"rotation must be between 0 and 180 degrees, not {self.rotation}.")
        if self.fill not in _PADDING_MODES:
            raise UserError(f"fill must be {choices(_PADDING_MODES)}, not {self.fill!r}.")

    def __call__(self, images: Tensor, generator: torch.Generator) -> Tensor:
        """
        Return augmented images of the same type.

        :param images: ``uint8`` or floating point, :math:`N \\times C \\times H \\times W`
        :param generator: source of the random numbers, on any device; the same state gives the
            same images
        """
        if images.ndim != 4:
            raise UserError(f"images must be N x C x H x W, not of shape {tuple(images.shape)}.")
        if not self._moves:
            return images
        theta = self._transforms(images.shape, generator).to(images.device)
        moved = images if images.is_floating_point() else images.float()
        grid = F.affine_grid(theta.to(moved.dtype), list(images.shape), align_corners=False)
        padding = _PADDING_MODES[self.fill]
        moved = F.grid_sample(moved, grid, padding_mode=padding, align_corners=False)
        return moved if images.is_floating_point() else moved.round_().to(images.dtype)

    def skip(self, count: int, generator: torch.Generator) -> None:
        """Advance ``generator`` as augmenting a batch of ``count`` images does."""
        if self._moves:
            _draws(count, generator)

    @property
    def _moves(self) -> bool:
        return bool(self.shift or self.rotation or self.flip)

    def _transforms(self, shape: torch.Size, generator: torch.Generator) -> Tensor:
        count, _, height, width = shape
        draws = _draws(count, generator)
        angle = (2 * draws[0] - 1) * math.radians(self.rotation)
        mirror = torch.where((draws[1] < 0.5) & self.flip, -1.0, 1.0)
        cos, sin = angle.cos(), angle.sin()
        # coordinates go from -1 to 1 on both axes, so a rotation must undo the aspect ratio
        rows = [
            torch.stack([cos * mirror, -sin * height / width, self._offset(draws[2], width)], -1),
            torch.stack([sin * mirror * width / height, cos, self._offset(draws[3], height)], -1),
        ]
        return torch.stack(rows, 1)

    def _offset(self, draws: Tensor, size: int) -> Tensor:
        return ((2 * draws - 1) * self.shift * size).round() * 2 / size


def _draws(count: int, generator: torch.Generator) -> Tensor:
    # always four numbers per image, so that switching one part off does not change the others
    return torch.rand((4, count), generator=generator, device=generator.device)
