"""The representation gap: correct, misclassified and OOD samples by Max.P and log(-D.Ent)."""

import numpy as np
import torch
from matplotlib.axes import Axes
from matplotlib.patches import Ellipse
from torch import Tensor

from dpn_plugin.detectors import representation
from dpn_plugin.report.figures.style import (
    SAMPLE_KINDS,
    ReportFigure,
    SampleKind,
    escape_dollars,
    panels,
    report_style,
)
from dpn_plugin.report.stored_runs import LoadedRun, StoredRun, load_dirichlet_runs

_MOST_POINTS = 400
_CAPTION = (
    "Every sample by Max.P and log(-D.Ent), seed {seeds}. Ellipses are the fitted Gaussians at one "
    "and two standard deviations; the further OOD lies from in-domain, the wider the gap."
)


def gap_figure(key: str, runs: list[StoredRun]) -> ReportFigure | None:
    """Return one panel per method with Dirichlet outputs, ``None`` if there is no such method."""
    shown = load_dirichlet_runs(runs)
    if not shown:
        return None
    with report_style():
        figure, axes = panels(len(shown), height=2.7, share=False)
        for run, own in zip(shown, axes, strict=True):
            _panel(own, run)
        handles = axes[0].get_legend_handles_labels()
        legend = figure.legend(*handles, loc="outside upper right", ncols=3)
        for handle in filter(None, legend.legend_handles):
            handle.set_alpha(1)
        figure.supxlabel("Max.P", fontsize=9)
        figure.supylabel("log(-D.Ent)", fontsize=9)
    seeds = ", ".join(sorted({str(run.seed) for run in shown}))
    return ReportFigure(key, "Representation gap", _CAPTION.format(seeds=seeds), figure)


def _panel(axes: Axes, run: LoadedRun) -> None:
    points = {kind: representation(logits) for kind, logits in run.logits_by_kind().items()}
    draw_kinds(axes, points)
    axes.set_title(escape_dollars(run.method))
    axes.set_xlim(0, 1.03)


def draw_kinds(axes: Axes, points: dict[str, Tensor]) -> None:
    """Draw the samples of each kind and the Gaussians that are fitted to them."""
    for kind, own in points.items():
        _scatter(axes, own, SAMPLE_KINDS[kind])
    for kind, own in points.items():
        _ellipses(axes, own, SAMPLE_KINDS[kind].colour)


def _scatter(axes: Axes, points: Tensor, kind: SampleKind) -> None:
    order = torch.randperm(len(points), generator=torch.Generator().manual_seed(0))
    x, y = points[order[:_MOST_POINTS]].T.numpy()
    axes.scatter(
        x, y, s=9, c=kind.colour, marker=kind.marker, alpha=0.5, linewidths=0.7, label=kind.title,
        rasterized=True,
    )  # fmt: skip


def _ellipses(axes: Axes, points: Tensor, colour: str) -> None:
    if len(points) < 3:
        return
    mean, covariance = points.mean(dim=0).numpy(), torch.cov(points.T).numpy()
    variances, directions = np.linalg.eigh(covariance)
    spread = np.sqrt(np.maximum(variances, 0))
    angle = np.degrees(np.arctan2(directions[1, 1], directions[0, 1]))
    for deviations in (1, 2):
        width, height = 2 * deviations * spread[1], 2 * deviations * spread[0]
        axes.add_patch(
            Ellipse((mean[0], mean[1]), width, height, angle=angle, fill=False, ec=colour, lw=1.4)
        )
