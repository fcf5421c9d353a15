"""Uncertainty over the plane, for suites with two-dimensional points."""

import numpy as np
import torch
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from torch import Tensor

from dpn_plugin.data import Samples, load
from dpn_plugin.functional import dirichlet_measures
from dpn_plugin.report.evaluations import Evaluation
from dpn_plugin.report.figures.style import MAP, Picture, plain, styled
from dpn_plugin.training import Predictor, Run, open_run

__all__ = ["map_picture"]

Extent = tuple[float, float, float, float]

_STEPS = 100
_TITLES = {
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


def map_picture(key: str, evaluations: list[Evaluation]) -> Picture | None:
    """:return: measures times methods, or ``None`` unless samples are points in the plane"""
    runs = {each.method: open_run(each.folder) for each in evaluations}
    if any(list(run.record["input_shape"]) != [2] for run in runs.values()):
        return None
    # a classifier beside a network that tells OOD samples apart is a baseline
    runs = {name: run for name, run in runs.items() if not run.method.detects_apart}
    points = _points([*runs.values()])
    grid, extent = _grid(torch.cat([each.inputs for each in points]))
    with styled():
        figure = Figure(figsize=(9, 1.7 * len(runs) + 0.3), layout="constrained")
        rows = figure.subplots(len(runs), len(_TITLES), squeeze=False, sharex=True, sharey=True)
        for row, (method, run) in zip(rows, runs.items(), strict=True):
            _row(row, run, grid, extent, points)
            row[0].set_ylabel(f"{plain(method)}\nx₂")
        for axes, title in zip(rows[0], _TITLES.values(), strict=True):
            axes.set_title(title)
        for axes in rows[-1]:
            axes.set_xlabel("x₁")
    return Picture(key, "Uncertainty over the plane", _CAPTION, figure)


def _points(runs: list[Run]) -> list[Samples]:
    # not every method is given the outliers
    config = max((run.config for run in runs), key=lambda config: len(config.outliers))
    inside = load(config.in_domain, root=".", in_domain=True)
    return [inside, *(load(spec, root=".") for spec in config.outliers)]


def _grid(points: Tensor) -> tuple[Tensor, Extent]:
    low, high = points.amin(dim=0), points.amax(dim=0)
    (left, bottom), (right, top) = low.tolist(), high.tolist()
    x, y = np.meshgrid(np.linspace(left, right, _STEPS), np.linspace(bottom, top, _STEPS))
    grid = torch.from_numpy(np.stack([x.ravel(), y.ravel()], axis=1).astype(np.float32))
    return grid, (left, right, bottom, top)


def _row(row: np.ndarray, run: Run, grid: Tensor, extent: Extent, points: list[Samples]) -> None:
    with torch.no_grad():
        outputs = Predictor(run).outputs(run.transform(grid))
    values = dirichlet_measures(outputs["logits"].double())._asdict() | outputs
    names = _OF_AVERAGES if run.method.averages else tuple(_TITLES)
    for axes, name in zip(row, _TITLES, strict=True):
        if name in names:
            _panel(axes, values[name].reshape(_STEPS, _STEPS).numpy(), extent, points)
        else:
            axes.set_axis_off()


def _panel(axes: Axes, values: np.ndarray, extent: Extent, points: list[Samples]) -> None:
    # D.Ent has poles far away: a few extreme values must not take all colours
    low, high = np.percentile(values, [3, 99])
    axes.imshow(values, extent=extent, origin="lower", cmap=MAP, vmin=low, vmax=high, aspect="auto")
    for samples, colour in zip(points, ("black", "white"), strict=False):
        x, y = samples.inputs.T.numpy()
        axes.scatter(x, y, s=0.7, c=colour, alpha=0.6, linewidths=0, rasterized=True)
    axes.grid(visible=False)
