"""The representation gap: where correct, misclassified and OOD samples lie."""

import numpy as np
import torch
from matplotlib.axes import Axes
from matplotlib.patches import Ellipse
from torch import Tensor

from dpn_plugin.functional import dirichlet_measures
from dpn_plugin.report.evaluations import Evaluation
from dpn_plugin.report.figures.style import KINDS, Kind, Picture, panels, plain, styled

__all__ = ["gap_picture"]

_MOST_POINTS = 400
_CAPTION = (
    "Every sample by Max.P and log(-D.Ent), seed {seeds}. Ellipses are the fitted Gaussians at one "
    "and two standard deviations; the further OOD lies from in-domain, the wider the gap."
)


def gap_picture(key: str, evaluations: list[Evaluation]) -> Picture | None:
    """:return: one panel per method whose outputs describe a Dirichlet, ``None`` without any"""
    shown = [each for each in evaluations if each.is_dirichlet]
    if not shown:
        return None
    with styled():
        figure, axes = panels(len(shown), height=2.7, share=False)
        for evaluation, own in zip(shown, axes, strict=True):
            _panel(own, evaluation)
        handles = axes[0].get_legend_handles_labels()
        legend = figure.legend(*handles, loc="outside upper right", ncols=3)
        for handle in filter(None, legend.legend_handles):
            handle.set_alpha(1)
        figure.supxlabel("Max.P", fontsize=9)
        figure.supylabel("log(-D.Ent)", fontsize=9)
    seeds = ", ".join(sorted({str(each.seed) for each in shown}))
    return Picture(key, "Representation gap", _CAPTION.format(seeds=seeds), figure)


def _panel(axes: Axes, evaluation: Evaluation) -> None:
    points, correct = _points(evaluation.test["logits"]), evaluation.correct
    groups = {
        "correct": points[correct],
        "misclassified": points[~correct],
        "ood": _points(evaluation.ood["logits"]),
    }
    for name, group in groups.items():
        _scatter(axes, group, KINDS[name])
    for name, group in groups.items():
        _ellipses(axes, group, KINDS[name].colour)
    axes.set_title(plain(evaluation.method))
    axes.set_xlim(0, 1.03)


def _points(logits: Tensor) -> Tensor:
    measures = dirichlet_measures(logits.double())
    return torch.stack([measures.max_p, measures.log_neg_differential_entropy], dim=1)


def _scatter(axes: Axes, points: Tensor, kind: Kind) -> None:
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
