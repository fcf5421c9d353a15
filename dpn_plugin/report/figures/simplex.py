"""Dirichlet densities on the simplex of three classes."""

import math
from collections.abc import Sequence

import numpy as np
import torch
from matplotlib.axes import Axes
from matplotlib.collections import TriMesh
from matplotlib.tri import Triangulation
from torch.distributions import Dirichlet

from dpn_plugin.errors import UserError
from dpn_plugin.report.figures.style import MAP, Picture, panels, styled

__all__ = ["draw_density", "simplex_picture"]

_CORNERS = np.array([[0.0, 0.0], [1.0, 0.0], [0.5, math.sqrt(3) / 2]])
_STEPS = 120
#: keeps the grid off the edges, where densities with a concentration below one are infinite
_INSET = 1 / (3 * _STEPS)


def simplex_picture(concentrations: Sequence[float], key: str = "simplex") -> Picture:
    """
    :param concentrations: three positive numbers
    :param key: name of its files
    :raises UserError: if they are not three, not positive or not finite
    """
    if len(concentrations) != 3:
        raise UserError(f"A simplex needs three concentrations, got {len(concentrations)}.")
    if not all(0 < each < math.inf for each in concentrations):
        listed = ", ".join(f"{each:g}" for each in concentrations)
        raise UserError(f"Concentrations must be positive and finite, got {listed}.")
    with styled():
        figure, (axes,) = panels(1, 1, 3.6)
        shown = draw_density(axes, concentrations)
        _name_corners(axes)
        axes.set_title(f"Dirichlet({', '.join(f'{each:g}' for each in concentrations)})")
        figure.colorbar(shown, ax=axes, label="log density", shrink=0.8)
    caption = "Corners are certain predictions of one class, the centre is the uniform one."
    return Picture(key, "Dirichlet density", caption, figure)


def draw_density(axes: Axes, concentrations: Sequence[float]) -> TriMesh:
    """
    Draw the log density, down to six below its highest value, and the mean as a ring: a density of
    high precision is no larger than a point.

    :return: what a colour bar needs
    """
    p = _grid()
    alpha = torch.tensor(concentrations, dtype=torch.float64)
    density = Dirichlet(alpha).log_prob(torch.from_numpy(p)).numpy()
    triangles = Triangulation(*(p @ _CORNERS).T)
    shown = axes.tripcolor(
        triangles, density, cmap=MAP, vmin=density.max() - 6, shading="gouraud", rasterized=True
    )
    mean = (alpha / alpha.sum()).numpy() @ _CORNERS
    axes.plot(*mean, "o", ms=5, mfc="none", mec="white", mew=1.6)
    axes.plot(*mean, "o", ms=5, mfc="none", mec="black", mew=0.6)
    axes.plot(*_CORNERS[[0, 1, 2, 0]].T, color="#59606b", lw=0.8)
    axes.set_aspect("equal")
    axes.set_axis_off()
    return shown


def _name_corners(axes: Axes) -> None:
    for corner, name, shift in zip(_CORNERS, "123", ((-8, -9), (8, -9), (0, 4)), strict=True):
        axes.annotate(
            f"class {name}", corner, xytext=shift, textcoords="offset points", ha="center",
            fontsize=8,
        )  # fmt: skip


def _grid() -> np.ndarray:
    steps = [(i, j, _STEPS - i - j) for i in range(_STEPS + 1) for j in range(_STEPS + 1 - i)]
    inside = np.array(steps) / _STEPS * (1 - 3 * _INSET) + _INSET
    return inside / inside.sum(axis=1, keepdims=True)
