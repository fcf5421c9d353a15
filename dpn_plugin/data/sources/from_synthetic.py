"""``synthetic:NAME``: the paper's points in the plane."""

from pathlib import Path

import numpy as np
import torch

from dpn_plugin.data.samples import Samples
from dpn_plugin.errors import UserError, choices, unknown_name

_MEANS = np.array([[-4.0, 0.0], [4.0, 0.0], [0.0, 5.0]])
# The paper's "variance sigma = 4" is the covariance 4I
_STANDARD_DEVIATION = 2.0
_POINTS_PER_CLASS = 200
_OOD_POINTS = 600
_OOD_LOW, _OOD_HIGH = np.array([-15.0, -13.0]), np.array([15.0, 17.0])
_OOD_DISTANCE = 6.5
_SEEDS = {"train": 0, "test": 1, "calibration": 2}


def load(argument: str, *, split: str | None, root: Path) -> Samples:
    """
    Return points of one of the paper's two distributions.

    ``gaussians``: three classes of 200 points, normal around (-4, 0), (4, 0) and (0, 5) with
    covariance 4I. ``gaussians-ood``: 600 points, uniform on [-15, 15] x [-13, 17] at a distance of
    6.5 or more from each mean.

    :param argument: one of the names above
    :param split: ``"train"`` (default), ``"test"`` or ``"calibration"``: independent draws
    :param root: not used
    """
    if split not in (None, *_SEEDS):
        raise UserError(f"split of synthetic:{argument} must be {choices(_SEEDS)}, not {split!r}.")
    draw = {"gaussians": _gaussians, "gaussians-ood": _around_gaussians}
    if argument not in draw:
        raise unknown_name("synthetic data set", argument, draw)
    points, labels = draw[argument](np.random.default_rng(_SEEDS[split or "train"]))
    return Samples(
        torch.from_numpy(points.astype(np.float32)),
        torch.from_numpy(labels),
        f"synthetic:{argument}",
    )


def _gaussians(rng: np.random.Generator) -> tuple[np.ndarray, np.ndarray]:
    labels = np.repeat(np.arange(len(_MEANS), dtype=np.int64), _POINTS_PER_CLASS)
    return rng.normal(_MEANS[labels], _STANDARD_DEVIATION), labels


def _around_gaussians(rng: np.random.Generator) -> tuple[np.ndarray, np.ndarray]:
    kept = np.empty((0, 2))
    while len(kept) < _OOD_POINTS:
        points = rng.uniform(_OOD_LOW, _OOD_HIGH, (_OOD_POINTS, 2))
        distances = np.linalg.norm(points[:, None] - _MEANS, axis=2)
        kept = np.concatenate([kept, points[(distances >= _OOD_DISTANCE).all(axis=1)]])
    return kept[:_OOD_POINTS], np.full(_OOD_POINTS, -1, dtype=np.int64)
