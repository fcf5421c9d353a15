"""Uncertainty over the plane, for suites whose samples are two-dimensional points."""

import math
from dataclasses import dataclass

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.image import AxesImage
from torch import Tensor

from dpn_plugin.errors import UserError
from dpn_plugin.functional import dirichlet_measures
from dpn_plugin.report.figures.style import COLOUR_MAP, ReportFigure, escape_dollars, report_style
from dpn_plugin.report.stored_runs import Outputs, StoredRun

MEASURE_TITLES = {
    "max_p": "Max.P",
    "entropy": "entropy",
    "mutual_information": "mutual information",
    "log_precision": "log α₀",
    "differential_entropy": "D.Ent",
}
_OF_AVERAGES = ("max_p", "entropy", "mutual_information")
_CAPTION = (
    "The five measures over the plane, one method a row, for the lowest seed; light is large, the "
    "scale is each panel's own. Black points are in-domain, white ones OOD training data. Averaged "
    "predictions have neither precision nor differential entropy."
)


@dataclass(frozen=True)
class Plane:
    """
    What the maps of one run are drawn from.

    :param grid: outputs for a square grid, row by row
    :param corners: its first and last point, lower left and upper right
    :param in_domain: in-domain training points
    :param ood: OOD training points
    """

    grid: Outputs
    corners: Tensor
    in_domain: Tensor
    ood: Tensor

    def measures(self) -> dict[str, np.ndarray]:
        """Return the measures that the run has, as squares from the lower left."""
        values = dirichlet_measures(self.grid.logits.double())._asdict()
        names = tuple(MEASURE_TITLES)
        if self.grid.mutual_information is not None:
            values["mutual_information"] = self.grid.mutual_information
            names = _OF_AVERAGES
        side = math.isqrt(len(self.grid.labels))
        return {name: values[name].reshape(side, side).numpy() for name in names}


def map_figure(key: str, runs: list[StoredRun]) -> ReportFigure | None:
    """Return measures x methods, or ``None`` unless samples are points in the plane."""
    if not all(run.record.outputs.plane for run in runs):
        return None
    planes = {run.record.method: load_plane(run) for run in runs}
    # a classifier beside a network that detects OOD samples is a baseline
    planes = {name: own for name, own in planes.items() if own.grid.ood_logits is None}
    if not planes:
        return None
    with report_style():
        figure = Figure(figsize=(9, 1.7 * len(planes) + 0.3), layout="constrained")
        rows = figure.subplots(
            len(planes), len(MEASURE_TITLES), squeeze=False, sharex=True, sharey=True
        )
        for row, (method, plane) in zip(rows, planes.items(), strict=True):
            _row(row, plane)
            row[0].set_ylabel(f"{escape_dollars(method)}\nx₂")
        for axes, title in zip(rows[0], MEASURE_TITLES.values(), strict=True):
            axes.set_title(title)
        for axes in rows[-1]:
            axes.set_xlabel("x₁")
    return ReportFigure(key, "Uncertainty over the plane", _CAPTION, figure)


def load_plane(run: StoredRun) -> Plane:
    """
    Return the outputs of a run for a grid and for points of the plane.

    :raises UserError: if it has none
    """
    keys = run.record.outputs.plane
    if not {"grid", "points"} <= keys.keys():
        raise UserError(f"{run.folder} has no outputs for a grid and points of the plane.")
    grid, points = (run.load_outputs(keys[name]) for name in ("grid", "points"))
    grid_inputs, inputs = _inputs(grid, run), _inputs(points, run)
    if math.isqrt(len(grid_inputs)) ** 2 != len(grid_inputs):
        raise UserError(f"The outputs of {run.folder} are not those of a square grid.")
    is_ood = points.labels < 0
    return Plane(grid, grid_inputs[[0, -1]], inputs[~is_ood], inputs[is_ood])


def _inputs(outputs: Outputs, run: StoredRun) -> Tensor:
    if outputs.inputs is None or outputs.inputs.shape[1] != 2:
        raise UserError(f"The outputs of {run.folder} are not those of points in the plane.")
    return outputs.inputs


def _row(row: np.ndarray, plane: Plane) -> None:
    values = plane.measures()
    for axes, name in zip(row, MEASURE_TITLES, strict=True):
        if name in values:
            draw_map(axes, values[name], plane)
            draw_points(axes, plane)
        else:
            axes.set_axis_off()


def draw_map(axes: Axes, values: np.ndarray, plane: Plane) -> AxesImage:
    """Draw a measure over the plane and return what a colour bar needs."""
    (left, bottom), (right, top) = plane.corners.tolist()
    # D.Ent has poles far away: a few extreme values must not use up the colour scale
    low, high = np.percentile(values, [3, 99])
    axes.grid(visible=False)
    return axes.imshow(
        values, extent=(left, right, bottom, top), origin="lower", cmap=COLOUR_MAP, vmin=low,
        vmax=high, aspect="auto",
    )  # fmt: skip


def draw_points(axes: Axes, plane: Plane) -> None:
    """Draw the training data: black points are in-domain, white ones OOD."""
    for points, colour in ((plane.in_domain, "black"), (plane.ood, "white")):
        x, y = points.T.numpy()
        axes.scatter(x, y, s=0.7, c=colour, alpha=0.6, linewidths=0, rasterized=True)
