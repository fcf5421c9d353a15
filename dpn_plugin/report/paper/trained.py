"""The figures of the paper that show trained networks: maps of the plane, and the gap."""

from collections.abc import Iterable

import numpy as np
import torch
from matplotlib.axes import Axes
from matplotlib.colors import SymLogNorm
from matplotlib.figure import Figure
from torch import Tensor

from dpn_plugin.detectors import representation
from dpn_plugin.errors import UserError
from dpn_plugin.report.figures.gap import draw_kinds
from dpn_plugin.report.figures.maps import Plane, draw_map, load_plane
from dpn_plugin.report.figures.style import ReportFigure, report_style
from dpn_plugin.report.paper.names import METHODS
from dpn_plugin.report.stored_runs import LoadedRun, StoredRun

_TITLES = {
    "max_p": "Max.P",
    "entropy": "Ent.",
    "mutual_information": "MI",
    "log_precision": "log α₀",
    "differential_entropy": "D.Ent",
}
_IN_TEXT = ("max_p", "mutual_information", "log_precision", "differential_entropy")
_LETTERS = "abcdefghijklmnop"
_MAP_CAPTION = (
    "Measures over the plane for networks trained on the points in (a); the scale is each panel's "
    "own."
)


def maps_figure(runs: dict[str, StoredRun]) -> ReportFigure:
    """
    Return figure 5: the measures of DPN+ and DPN- over the plane.

    :raises UserError: if a run is missing or its samples are not points in the plane
    """
    planes = _planes(runs, ("dpn-plus", "dpn-minus"))
    with report_style():
        figure = Figure(figsize=(9.6, 3.7), layout="constrained")
        axes = figure.subplot_mosaic("abcde;afghi", width_ratios=[1.25, 1, 1, 1, 1])
        _data_panel(axes["a"], next(iter(planes.values())))
        _map_rows(figure, axes, planes, _IN_TEXT)
    return ReportFigure("paper-figure-5", "Measures over the plane", _MAP_CAPTION, figure)


def all_maps_figure(runs: dict[str, StoredRun]) -> ReportFigure:
    """
    Return figure 7: all measures of DPN_rev, DPN+ and DPN- over the plane.

    :raises UserError: if a run is missing or its samples are not points in the plane
    """
    planes = _planes(runs, ("dpn-rev", "dpn-plus", "dpn-minus"))
    with report_style():
        figure = Figure(figsize=(9.6, 8.2), layout="constrained")
        # a part of its own, because its labels would widen the gap between two columns of maps
        parts = figure.add_gridspec(2, 1, height_ratios=[1, 2.1])
        _data_panel(figure.add_subfigure(parts[0]).subplots(), next(iter(planes.values())))
        axes = figure.add_subfigure(parts[1]).subplot_mosaic("bcdef;ghijk;lmnop")
        _map_rows(figure, axes, planes, tuple(_TITLES))
    return ReportFigure("paper-figure-7", "All measures over the plane", _MAP_CAPTION, figure)


def gap_figure(runs: dict[str, StoredRun]) -> ReportFigure:
    """
    Return figure 6: the uncertainty of DPN- and of the other prior networks, normalized.

    :raises UserError: if a run is missing
    """
    others = [name for name in ("dpn-rev", "dpn-plus", "dpn-fwd") if name in runs][:2]
    _check(runs, ("dpn-minus", *(others or ["dpn-rev"])))
    loaded = {name: runs[name].load() for name in ("dpn-minus", *others)}
    with report_style():
        figure = Figure(figsize=(3.1 * len(loaded), 3.1), layout="constrained")
        panels = figure.subplots(1, len(loaded), sharex=True, sharey=True)
        for letter, axes, (name, run) in zip(_LETTERS, panels, loaded.items(), strict=False):
            draw_kinds(axes, _normalized(run))
            axes.set_title(f"({letter}) {METHODS[name]}")
            axes.set_xlabel("Max.P, normalized")
        panels[0].set_ylabel("log(-D.Ent), normalized")
        handles = panels[0].get_legend_handles_labels()
        legend = figure.legend(*handles, loc="outside upper center", ncols=3)
        for handle in filter(None, legend.legend_handles):
            handle.set_alpha(1)
    caption = (
        "Samples by Max.P and log(-D.Ent), each scaled to 0 to 1 within a network. Ellipses are "
        "the fitted Gaussians at one and two standard deviations."
    )
    return ReportFigure("paper-figure-6", "Distribution of the uncertainty", caption, figure)


def _normalized(run: LoadedRun) -> dict[str, Tensor]:
    """Return Max.P and log(-D.Ent) of each kind of samples, scaled to 0 to 1 over all kinds."""
    points = {kind: representation(logits) for kind, logits in run.logits_by_kind().items()}
    joined = torch.cat([*points.values()])
    low, high = joined.amin(dim=0), joined.amax(dim=0)
    width = (high - low).clamp_min(torch.finfo(joined.dtype).tiny)
    return {kind: (own - low) / width for kind, own in points.items()}


def _check(runs: dict[str, StoredRun], names: Iterable[str]) -> None:
    missing = [name for name in names if name not in runs]
    if missing:
        raise UserError(f"The benchmark has no run of {', '.join(missing)}.")


def _planes(runs: dict[str, StoredRun], names: tuple[str, ...]) -> dict[str, Plane]:
    _check(runs, names)
    if not all(runs[name].record.outputs.plane for name in names):
        raise UserError("The samples of this benchmark are not points in the plane.")
    return {name: load_plane(runs[name]) for name in names}


def _data_panel(axes: Axes, plane: Plane) -> None:
    (left, bottom), (right, top) = plane.corners.tolist()
    for points, colour, title in (
        (plane.ood, "#CC79A7", "OOD"),
        (plane.in_domain, "#0072B2", "in-domain"),
    ):
        x, y = points.T.numpy()
        axes.scatter(x, y, s=3, c=colour, linewidths=0, label=title, rasterized=True)
    axes.set(xlim=(left, right), ylim=(bottom, top), aspect="equal", xlabel="x₁", ylabel="x₂")
    axes.set_title("(a) training data")
    axes.legend(
        loc="upper center", bbox_to_anchor=(0.5, -0.28), ncols=2, markerscale=3, handletextpad=0.1
    )


def _map_rows(
    figure: Figure, axes: dict[str, Axes], planes: dict[str, Plane], measures: tuple[str, ...]
) -> None:
    letters = iter(_LETTERS[1:])
    for method, plane in planes.items():
        values = plane.measures()
        for name in measures:
            letter = next(letters)
            own = axes[letter]
            _map_panel(figure, own, values[name], plane)
            own.set_title(f"({letter}) {_TITLES[name]}", fontsize=8.5)
            if name == measures[0]:
                own.set_ylabel(METHODS[method], fontsize=10, fontweight="bold")


def _map_panel(figure: Figure, axes: Axes, values: np.ndarray, plane: Plane) -> None:
    shown = draw_map(axes, values, plane)
    low, high = shown.get_clim()
    if low < -100 and high < 0:  # D.Ent of DPN-: tens in-domain, thousands far away
        shown.set_norm(SymLogNorm(10, vmin=low, vmax=high))
    axes.set(xticks=[], yticks=[], aspect="equal")
    bar = figure.colorbar(shown, cax=axes.inset_axes((1.04, 0, 0.07, 1)))
    bar.ax.tick_params(labelsize=6.5, length=2)
    bar.ax.minorticks_off()
    bar.outline.set_visible(False)
