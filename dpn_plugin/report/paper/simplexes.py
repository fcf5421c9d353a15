"""The figures of the paper that need no trained network: densities and regularisers."""

from collections.abc import Mapping

import numpy as np
import torch
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.layout_engine import ConstrainedLayoutEngine

from dpn_plugin.functional import dirichlet_measures
from dpn_plugin.report.figures.simplex import draw_density
from dpn_plugin.report.figures.style import ReportFigure, report_style

#: title: concentrations, by figure
_DESIRED = {
    "(a) confident\n": (2.0, 2.0, 30.0),
    "(b) data uncertainty\n": (34.0, 34.0, 34.0),
    "(c) distributional,\nexisting": (1.0, 1.0, 1.0),
    "(d) distributional,\nproposed": (0.1, 0.1, 0.1),
}
_SAME_PRECISION = {"(a)": (0.01, 0.01, 101.98), "(b)": (34.0, 34.0, 34.0)}
_PRECISIONS = {"(a)": (10.0, 10.0, 10.0), "(b)": (3.0, 3.0, 3.0), "(c)": (0.1, 0.1, 0.1)}
_CLASSES = 3
#: the logits that the paper wants for in-domain and for OOD samples
_WANTED = {-5: ("OOD", "#CC79A7"), 5: ("in-domain", "#0072B2")}


def desired_figure() -> ReportFigure:
    """Return figure 1: the Dirichlet distributions that a network should give."""
    caption = (
        "Log density, light is dense, the ring is the mean: a confident prediction, overlapping "
        "classes, and an OOD sample for the earlier methods (flat) and for DPN- (at the corners)."
    )
    figure = _densities({title: (own, title) for title, own in _DESIRED.items()})
    return ReportFigure("paper-figure-1", "Desired Dirichlet distributions", caption, figure)


def same_precision_figure() -> ReportFigure:
    """Return figure 2: two Dirichlet distributions of the same precision."""
    caption = "Log density, light is dense, the ring is the mean; both have precision 102."
    return ReportFigure("paper-figure-2", "The same precision", caption, _measured(_SAME_PRECISION))


def precisions_figure() -> ReportFigure:
    """Return figure 4: Dirichlet distributions of different precision."""
    caption = "Log density, light is dense, the ring is the mean."
    return ReportFigure("paper-figure-4", "Different precision", caption, _measured(_PRECISIONS))


def regularizer_figure() -> ReportFigure:
    """Return figure 3: how the precision and the regulariser grow with the logits."""
    z = np.linspace(-10, 10, 401)
    sigmoid = 1 / (1 + np.exp(-z))
    with report_style():
        figure = Figure(figsize=(7.2, 2.9), layout="constrained")
        left, right = figure.subplots(1, 2)
        _curves(left, z, _CLASSES * np.exp(z), _CLASSES * np.exp(z), "(a)  Σ exp z")
        _curves(right, z, sigmoid, sigmoid * (1 - sigmoid), "(b)  mean of sigmoid z")
        left.set_ylim(-60, 1200)
        right.set_ylim(-0.06, 1.2)
        left.legend(loc="center")
        for axes in (left, right):
            _mark_wanted(axes)
    caption = (
        "All three logits are z. The precision is unbounded and its slope grows with it; the mean "
        "sigmoid is bounded, symmetric, and hardly changes beyond -5 and 5."
    )
    return ReportFigure("paper-figure-3", "Growth of the regularisers", caption, figure)


def _measured(densities: Mapping[str, tuple[float, ...]]) -> Figure:
    """Return densities with their differential entropy and mutual information."""
    panels = {}
    for letter, concentrations in densities.items():
        measures = dirichlet_measures(torch.tensor([concentrations], dtype=torch.float64).log())
        listed = ", ".join(f"{each:g}" for each in concentrations)
        entropy, information = measures.differential_entropy.item(), measures.mutual_information
        below = f"D.Ent = {entropy:.4g},  MI = {information.item():.2g}"
        panels[letter] = (concentrations, f"{letter} Dir({listed})\n{below}")
    return _densities(panels)


def _densities(panels: dict[str, tuple[tuple[float, ...], str]]) -> Figure:
    with report_style():
        figure = Figure(
            figsize=(2.35 * len(panels), 2.55), layout=ConstrainedLayoutEngine(h_pad=0.1)
        )
        for axes, (concentrations, title) in zip(
            figure.subplots(1, len(panels)), panels.values(), strict=True
        ):
            draw_density(axes, concentrations)
            axes.set_title(title, fontsize=8.5, loc="center")
    return figure


def _curves(axes: Axes, z: np.ndarray, values: np.ndarray, slopes: np.ndarray, title: str) -> None:
    axes.plot(z, values, color="#009E73", lw=2, label="value")
    axes.plot(z, slopes, color="#D55E00", lw=1.4, ls="--", label="slope")
    axes.set_title(title)
    axes.set_xlabel("logit z")
    axes.set(xlim=(-10, 10), xticks=range(-10, 11, 5))


def _mark_wanted(axes: Axes) -> None:
    """Mark the logits that the paper aims at."""
    for z, (title, colour) in _WANTED.items():
        axes.axvline(z, color=colour, lw=1, ls=":")
        axes.annotate(
            title, (z, 1), xycoords=("data", "axes fraction"), xytext=(-3, -3),
            textcoords="offset points", ha="right", va="top", fontsize=8, color=colour,
        )  # fmt: skip
