"""Dirichlet densities on the simplex of three classes: of given concentrations, and of runs."""

import math
from collections.abc import Sequence

import numpy as np
import torch
from matplotlib.axes import Axes
from matplotlib.collections import TriMesh
from matplotlib.figure import Figure
from matplotlib.tri import Triangulation
from torch import Tensor
from torch.distributions import Dirichlet

from dpn_plugin.errors import UserError
from dpn_plugin.functional import log_precision
from dpn_plugin.report.figures.style import (
    COLOUR_MAP,
    SAMPLE_KINDS,
    ReportFigure,
    escape_dollars,
    panels,
    report_style,
)
from dpn_plugin.report.stored_runs import StoredRun, load_dirichlet_runs

_CORNERS = np.array([[0.0, 0.0], [1.0, 0.0], [0.5, math.sqrt(3) / 2]])
_STEPS = 120
#: keeps the grid away from the edges, where a concentration below one has an infinite density
_INSET = 1 / (3 * _STEPS)
_TYPICAL_CAPTION = (
    "The Dirichlet distribution of the sample with the median precision of its kind, one method a "
    "row, as log density: light is dense, the ring is the mean. Concentrations stand above."
)


def simplex_figure(concentrations: Sequence[float], key: str = "simplex") -> ReportFigure:
    """
    Return the density of a Dirichlet distribution over three classes.

    :param concentrations: three positive numbers
    :param key: name of its files
    :raises UserError: if they are not three, not positive or not finite
    """
    if len(concentrations) != 3:
        raise UserError(f"A simplex needs three concentrations, got {len(concentrations)}.")
    if not all(0 < each < math.inf for each in concentrations):
        listed = ", ".join(f"{each:g}" for each in concentrations)
        raise UserError(f"Concentrations must be positive and finite, got {listed}.")
    with report_style():
        figure, (axes,) = panels(1, 1, 3.6)
        shown = draw_density(axes, concentrations)
        _name_corners(axes)
        axes.set_title(f"Dirichlet({', '.join(f'{each:g}' for each in concentrations)})")
        figure.colorbar(shown, ax=axes, label="log density", shrink=0.8)
    caption = "Corners are certain predictions of one class, the centre is the uniform one."
    return ReportFigure(key, "Dirichlet density", caption, figure)


def typical_figure(key: str, runs: list[StoredRun]) -> ReportFigure | None:
    """Return the densities of typical samples, or ``None`` unless there are three classes."""
    shown = load_dirichlet_runs(runs)
    if not shown or shown[0].in_domain.logits.shape[1] != 3:
        return None
    with report_style():
        figure = Figure(figsize=(7.5, 2.3 * len(shown)), layout="constrained")
        grid = figure.subplots(len(shown), 3, squeeze=False)
        for run, row in zip(shown, grid, strict=True):
            for axes, (kind, logits) in zip(row, run.logits_by_kind().items(), strict=True):
                title = f"{escape_dollars(run.method)}: {SAMPLE_KINDS[kind].title}"
                _typical_panel(axes, logits, title)
    return ReportFigure(key, "Typical Dirichlet distributions", _TYPICAL_CAPTION, figure)


def _typical_panel(axes: Axes, logits: Tensor, title: str) -> None:
    axes.set_axis_off()
    if len(logits):
        concentrations = _median_concentrations(logits.double())
        draw_density(axes, concentrations)
        title += f"\n({', '.join(f'{each:.3g}' for each in concentrations)})"
    axes.set_title(title, fontsize=7.5, loc="center")


def _median_concentrations(logits: Tensor) -> list[float]:
    """Return the concentrations of the sample with the median precision."""
    order = log_precision(logits).argsort()
    # beyond e^20 a density is a point, whatever its concentrations
    return logits[order[len(order) // 2]].clamp(-20, 20).exp().tolist()


def draw_density(axes: Axes, concentrations: Sequence[float]) -> TriMesh:
    """
    Draw the log density, down to six below the densest hundredth of the simplex at most, and return
    what a colour bar needs.

    The mean is drawn as a ring, because a density of high precision is no larger than a point.
    """
    p = _grid()
    alpha = torch.tensor(concentrations, dtype=torch.float64)
    density = Dirichlet(alpha).log_prob(torch.from_numpy(p)).numpy()
    # concentrations below one have poles in the corners, which must not use up the colour scale
    highest = float(np.percentile(density, 99))
    span = min(max(highest - float(density.min()), 3.0), 6.0)  # a flat density is light
    triangles = Triangulation(*(p @ _CORNERS).T)
    shown = axes.tripcolor(
        triangles,
        density,
        cmap=COLOUR_MAP,
        vmin=highest - span,
        vmax=highest,
        shading="gouraud",
        rasterized=True,
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
