"""Uncertainty over the plane, for suites with two-dimensional points."""

from collections.abc import Iterator

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

_STEPS = 90
_MEASURES = ("Max.P", "entropy", "mutual information", "log α₀", "D.Ent")
_CAPTION = (
    "The five measures over the plane, one method a row, for the lowest seed. Black points are "
    "in-domain, white ones OOD training data; light is large."
)


def map_picture(key: str, evaluations: list[Evaluation]) -> Picture | None:
    """:return: measures times methods, or ``None`` unless samples are points in the plane"""
    runs = {each.method: open_run(each.folder) for each in evaluations}
    if any(list(run.record["input_shape"]) != [2] for run in runs.values()):
        return None
    points = [*_points(next(iter(runs.values())))]
    grid, extent = _grid(torch.cat([each.inputs for each in points]))
    with styled():
        figure = Figure(figsize=(10.5, 2.1 * len(runs) + 0.3), layout="constrained")
        rows = figure.subplots(len(runs), len(_MEASURES), squeeze=False, sharex=True, sharey=True)
        for row, (method, run) in zip(rows, runs.items(), strict=True):
            for axes, name, values in zip(row, _MEASURES, _values(run, grid), strict=True):
                _panel(axes, values, extent, points)
                axes.set_title(f"{plain(method)}: {name}", fontsize=8)
            row[0].set_ylabel("x₂")
        for axes in rows[-1]:
            axes.set_xlabel("x₁")
    return Picture(key, "Uncertainty over the plane", _CAPTION, figure)


def _points(run: Run) -> Iterator[Samples]:
    # sources of points in the plane are generated, or files named by the run itself
    yield load(run.config.in_domain, root=".", in_domain=True)
    for spec in run.config.outliers:
        yield load(spec, root=".")


def _grid(points: Tensor) -> tuple[Tensor, Extent]:
    low, high = points.amin(dim=0), points.amax(dim=0)
    margin = 0.05 * (high - low)
    (left, bottom), (right, top) = (low - margin).tolist(), (high + margin).tolist()
    x, y = np.meshgrid(np.linspace(left, right, _STEPS), np.linspace(bottom, top, _STEPS))
    grid = torch.from_numpy(np.stack([x.ravel(), y.ravel()], axis=1).astype(np.float32))
    return grid, (left, right, bottom, top)


def _values(run: Run, grid: Tensor) -> list[np.ndarray]:
    with torch.no_grad():
        outputs = Predictor(run).outputs(run.transform(grid))
    found = dirichlet_measures(outputs["logits"].double())._asdict()
    # members that are averaged disagree with each other; they describe no Dirichlet distribution
    found["mutual_information"] = outputs.get("mutual_information", found["mutual_information"])
    names = ("max_p", "entropy", "mutual_information", "log_precision", "differential_entropy")
    return [found[name].reshape(_STEPS, _STEPS).numpy() for name in names]


def _panel(axes: Axes, values: np.ndarray, extent: Extent, points: list[Samples]) -> None:
    # D.Ent has poles far away: the lowest values must not take all colours
    low, high = np.percentile(values, [5, 100])
    axes.imshow(
        values, extent=extent, origin="lower", cmap=MAP, vmin=low, vmax=high, aspect="auto",
        interpolation="bilinear",
    )  # fmt: skip
    for samples, colour in zip(points, ("black", "white"), strict=False):
        x, y = samples.inputs.T.numpy()
        axes.scatter(x, y, s=0.8, c=colour, alpha=0.6, linewidths=0)
    axes.grid(visible=False)
