"""A grid over the plane, for data sets whose samples are two-dimensional points."""

from collections.abc import Sequence

import numpy as np
import torch

from dpn_plugin.data import Samples

#: names of the sets whose outputs are stored for maps of the plane
PLANE_SETS = ("plane.grid", "plane.points")

_STEPS = 100


def plane_samples(train: Samples, outliers: Sequence[Samples]) -> dict[str, Samples]:
    """
    Return the grid that maps are computed on and the training points that are drawn over them.

    :param train: in-domain training data
    :param outliers: OOD training data
    :return: ``plane.grid``, 100 x 100 points, row by row, that span the training data, and
        ``plane.points``; nothing unless samples are points in the plane
    """
    if train.inputs.shape[1:] != (2,):
        return {}
    points = torch.cat([each.all_rows() for each in (train, *outliers)])
    labels = torch.cat([train.labels, *(each.labels for each in outliers)])
    (left, bottom), (right, top) = points.amin(dim=0).tolist(), points.amax(dim=0).tolist()
    x, y = np.meshgrid(np.linspace(left, right, _STEPS), np.linspace(bottom, top, _STEPS))
    grid = torch.from_numpy(np.stack([x.ravel(), y.ravel()], axis=1).astype(np.float32))
    return {
        "plane.grid": Samples(grid, torch.full((len(grid),), -1), "grid"),
        "plane.points": Samples(points, labels, "training points"),
    }
