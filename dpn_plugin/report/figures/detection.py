"""How well scores separate in-domain from OOD samples: ROC curves and histograms."""

from typing import Any

import numpy as np
import torch
from matplotlib.axes import Axes
from sklearn.metrics import auc, roc_curve
from torch import Tensor

from dpn_plugin.metrics import ood_metrics
from dpn_plugin.report.figures.style import (
    SAMPLE_KINDS,
    ReportFigure,
    escape_dollars,
    line_styles,
    panels,
    report_style,
)
from dpn_plugin.report.scores import Measure, measures
from dpn_plugin.report.stored_runs import LoadedRun, StoredRun

_ROC_CAPTION = (
    "OOD samples found against in-domain samples rejected, each method with the best of the five "
    "measures and the lowest seed; AUROC over the pooled sets in brackets."
)
_HISTOGRAM_CAPTION = (
    "Scores of in-domain test samples and of near and far OOD samples, each method with the one of "
    "the five measures that tells them apart best. The less the shapes overlap, the better."
)


def roc_figure(key: str, runs: list[StoredRun]) -> ReportFigure:
    """Return one panel for near and one for far OOD sets, with a line per method."""
    loaded = [run.load() for run in runs]
    groups = list(dict.fromkeys(group for run in loaded for group in run.groups))
    with report_style():
        figure, axes = panels(len(groups), 2, 3.9)
        for run, style in zip(loaded, line_styles(), strict=False):
            best = _best_measure(run)
            for group, own in zip(groups, axes, strict=True):
                if group in run.groups:
                    scores = best.score(run.in_domain), best.score(run.groups[group])
                    label = f"{escape_dollars(run.method)}, {best.title}"
                    _roc_curve(own, *scores, label, style)
        for group, own in zip(groups, axes, strict=True):
            own.plot([0, 1], [0, 1], color="#8a8f98", lw=0.8)
            own.set(title=f"{group} OOD", xlabel="in-domain samples rejected")
            own.legend(loc="lower right", fontsize=7.5)
        axes[0].set_ylabel("OOD samples found")
    return ReportFigure(key, "ROC curves", _ROC_CAPTION, figure)


def histogram_figure(key: str, runs: list[StoredRun]) -> ReportFigure:
    """Return the distributions of scores, one panel per method."""
    with report_style():
        figure, axes = panels(len(runs), height=2.2, share=False)
        for run, own in zip(runs, axes, strict=True):
            _histogram(own, run.load())
        figure.legend(*axes[0].get_legend_handles_labels(), loc="outside upper right", ncols=3)
        figure.supylabel("density", fontsize=9)
    return ReportFigure(key, "Score histograms", _HISTOGRAM_CAPTION, figure)


def _roc_curve(
    axes: Axes, in_scores: Tensor, out_scores: Tensor, label: str, style: dict[str, Any]
) -> None:
    is_ood = np.repeat([False, True], [len(in_scores), len(out_scores)])
    rejected, found, _ = roc_curve(is_ood, torch.cat([in_scores, out_scores]).numpy())
    label = f"{label} ({100 * auc(rejected, found):.1f} %)"
    axes.plot(rejected, found, lw=1.4, label=label, **style)


def _histogram(axes: Axes, run: LoadedRun) -> None:
    best = _best_measure(run)
    outputs = {"in_domain": run.in_domain, **run.groups}
    scores = {kind: best.score(own).numpy() for kind, own in outputs.items()}
    # a few extreme samples must not squeeze all others into one bar
    low, high = np.percentile(np.concatenate([*scores.values()]), [0.5, 99.5])
    edges = np.linspace(low, high if high > low else low + 1, 41).tolist()
    for kind, values in scores.items():
        style = SAMPLE_KINDS[kind]
        axes.hist(
            np.clip(values, edges[0], edges[-1]), edges, density=True, histtype="stepfilled",
            facecolor=(style.colour, 0.3), edgecolor=style.colour, lw=1.2, label=style.title,
        )  # fmt: skip
    axes.set(title=escape_dollars(run.method), xlabel=best.title)
    axes.grid(axis="x", visible=False)


def _best_measure(run: LoadedRun) -> Measure:
    """Return the measure with the highest AUROC over all OOD samples."""

    def auroc(measure: Measure) -> float:
        return ood_metrics(measure.score(run.in_domain), measure.score(run.ood))["auroc"]

    return max(measures(run.in_domain).values(), key=auroc)
