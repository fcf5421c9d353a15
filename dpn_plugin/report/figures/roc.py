"""ROC curves of OOD detection."""

from typing import Any

import numpy as np
import torch
from matplotlib.axes import Axes
from sklearn.metrics import auc, roc_curve

from dpn_plugin.report.evaluations import Evaluation
from dpn_plugin.report.figures.measures import best_score
from dpn_plugin.report.figures.style import Picture, lines, panels, plain, styled

__all__ = ["roc_picture"]

_CAPTION = (
    "OOD samples found against in-domain samples rejected, each method with the best of the five "
    "measures and the lowest seed; AUROC over the pooled sets in brackets."
)


def roc_picture(key: str, evaluations: list[Evaluation]) -> Picture:
    """:return: one panel for near and one for far OOD sets, a line per method"""
    groups = list(evaluations[0].groups)
    with styled():
        figure, axes = panels(len(groups), 2, 3.9)
        for group, own in zip(groups, axes, strict=True):
            for evaluation, line in zip(evaluations, lines(), strict=False):
                _curve(own, evaluation, group, line)
            own.plot([0, 1], [0, 1], color="#8a8f98", lw=0.8)
            own.set(title=f"{group} OOD", xlabel="in-domain samples rejected")
            own.legend(loc="lower right", fontsize=7.5)
        axes[0].set_ylabel("OOD samples found")
    return Picture(key, "ROC curves", _CAPTION, figure)


def _curve(axes: Axes, evaluation: Evaluation, group: str, line: dict[str, Any]) -> None:
    name, score = best_score(evaluation)
    inside, outside = score(evaluation.test), score(evaluation.groups[group])
    is_ood = np.repeat([False, True], [len(inside), len(outside)])
    scores = torch.cat([inside, outside]).numpy()
    rejected, found, _ = roc_curve(is_ood, scores)
    label = f"{plain(evaluation.method)}, {name} ({100 * auc(rejected, found):.1f} %)"
    axes.plot(rejected, found, lw=1.4, label=label, **line)
