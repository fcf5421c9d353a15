"""Mixtures of in-domain samples and outliers, and all mixings by name."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from torch import Tensor
from torch.nn import functional as F

from dpn_plugin.data.mixed import Mixed, check_positive, numpy_generator
from dpn_plugin.data.pixmix import PixMix
from dpn_plugin.errors import UserError, choices

_FORMS = ("mixup", "cutmix")


@dataclass(frozen=True)
class MixOE:
    """
    Replaces every outlier of a batch by a mixture of it with an in-domain sample.

    An in-domain sample has the share s of a mixture, which is drawn once for a batch. The target of
    the mixture is s for its class, and 1 - s in equal parts for all classes.

    :param form: ``"mixup"`` adds both, weighted; ``"cutmix"`` pastes a rectangle of the outlier
        into the in-domain image
    :param alpha: both parameters of the beta distribution of the share; the authors' 1
    """

    form: str = "mixup"
    alpha: float = 1.0

    def __post_init__(self) -> None:
        if self.form not in _FORMS:
            raise UserError(f"form must be {choices(_FORMS)}, not {self.form!r}.")
        check_positive("alpha", self.alpha)

    def why_not(self, kind: str) -> str | None:
        """
        Return why samples cannot be mixed, ``None`` if they can.

        :param kind: ``"images"``, ``"points"`` or ``"features"``
        """
        if self.form == "mixup" or kind == "images":
            return None
        return f"cutmix pastes parts of images, and {kind} have none; use form=mixup"

    def __call__(
        self, inputs: Tensor, labels: Tensor, num_classes: int, generator: torch.Generator
    ) -> Mixed:
        """
        Return the batch with mixtures in the place of outliers, and all targets.

        :param inputs: images, points or features; outliers after in-domain samples
        :param labels: below 0 for outliers
        :param num_classes: number of classes
        :param generator: source of the random numbers
        """
        rng = numpy_generator(generator)
        count = int((labels >= 0).sum())
        partners = torch.from_numpy(rng.integers(count, size=len(inputs) - count))
        partners = partners.to(inputs.device)
        mix = self._mixup if self.form == "mixup" else self._cutmix
        mixed, share = mix(inputs[:count][partners], inputs[count:], rng)
        own = F.one_hot(labels[:count], num_classes).float()
        soft = share * own[partners] + (1 - share) / num_classes
        return Mixed(torch.cat([inputs[:count], mixed]), torch.cat([own, soft]))

    def _mixup(
        self, inside: Tensor, outside: Tensor, rng: np.random.Generator
    ) -> tuple[Tensor, float]:
        share = float(rng.beta(self.alpha, self.alpha))
        mixed = share * inside + (1 - share) * outside
        return mixed if inside.is_floating_point() else mixed.round().to(inside.dtype), share

    def _cutmix(
        self, inside: Tensor, outside: Tensor, rng: np.random.Generator
    ) -> tuple[Tensor, float]:
        side = (1 - rng.beta(self.alpha, self.alpha)) ** 0.5
        height, width = inside.shape[2:]
        rows, columns = _span(height, side, rng), _span(width, side, rng)
        mixed = inside.clone()
        mixed[:, :, rows, columns] = outside[:, :, rows, columns]
        pasted = (rows.stop - rows.start) * (columns.stop - columns.start)
        return mixed, 1 - pasted / (height * width)


#: by the name that methods have for them
MIXINGS: dict[str, Callable[..., Any]] = {"mixoe": MixOE, "pixmix": PixMix}


def _span(length: int, share: float, rng: np.random.Generator) -> slice:
    """Return a slice of about this share of a length, around a random place, within bounds."""
    half, centre = int(length * share) // 2, int(rng.integers(length))
    return slice(max(0, centre - half), min(length, centre + half))
