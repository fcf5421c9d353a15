"""Reliability diagrams: whether a model is right as often as it says."""

from typing import Any

import numpy as np
import torch
from matplotlib.axes import Axes
from torch import Tensor

from dpn_plugin.functional import max_p
from dpn_plugin.report.evaluations import Evaluation
from dpn_plugin.report.figures.style import Picture, lines, panels, plain, styled

__all__ = ["reliability_picture"]

_BINS = 12
_CAPTION = (
    "Accuracy against confidence in bins of equal size, before temperature scaling, for the lowest "
    "seed. On the diagonal a model is right as often as it says; OOD samples are always wrong."
)


def reliability_picture(key: str, evaluations: list[Evaluation]) -> Picture:
    """:return: in-domain alone, and with an equal share of OOD samples; a line per method"""
    with styled():
        figure, axes = panels(2, 2, 3.4)
        for evaluation, line in zip(evaluations, lines(), strict=False):
            inside, right = max_p(evaluation.test["logits"].double()), evaluation.correct
            _line(axes[0], inside, right, plain(evaluation.method), line)
            mixed = _with_ood(inside, right, max_p(evaluation.ood["logits"].double()))
            _line(axes[1], *mixed, plain(evaluation.method), line)
        for own, title in zip(axes, ("in-domain", "half OOD"), strict=True):
            own.plot([0, 1], [0, 1], color="#8a8f98", lw=0.8)
            own.set(title=title, xlabel="confidence (Max.P)", xlim=(0, 1.02), ylim=(0, 1.02))
        axes[0].set_ylabel("accuracy")
        figure.legend(*axes[0].get_legend_handles_labels(), loc="outside right upper")
    return Picture(key, "Reliability", _CAPTION, figure)


def _with_ood(inside: Tensor, right: Tensor, outside: Tensor) -> tuple[Tensor, Tensor]:
    share = min(len(inside), len(outside))
    generator = torch.Generator().manual_seed(0)
    kept, added = (torch.randperm(len(x), generator=generator)[:share] for x in (inside, outside))
    wrong = torch.zeros(share, dtype=torch.bool)
    return torch.cat([inside[kept], outside[added]]), torch.cat([right[kept], wrong])


def _line(axes: Axes, sure: Tensor, right: Tensor, label: str, line: dict[str, Any]) -> None:
    order = torch.argsort(sure, stable=True)
    bins = [part for part in np.array_split(order.numpy(), _BINS) if len(part)]
    x = [float(sure[part].mean()) for part in bins]
    y = [float(right[part].double().mean()) for part in bins]
    axes.plot(x, y, marker="o", ms=3, lw=1.3, label=label, **line)
