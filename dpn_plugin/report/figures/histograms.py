"""How outlier scores of in-domain and OOD samples are distributed."""

import numpy as np
from matplotlib.axes import Axes

from dpn_plugin.report.evaluations import Evaluation
from dpn_plugin.report.figures.measures import best_score
from dpn_plugin.report.figures.style import KINDS, Picture, panels, plain, styled

__all__ = ["histogram_picture"]

_CAPTION = (
    "Scores of in-domain test samples and of near and far OOD samples, each method with the one of "
    "the five measures that tells them apart best. The less the shapes overlap, the better."
)


def histogram_picture(key: str, evaluations: list[Evaluation]) -> Picture:
    """:return: one panel per method"""
    with styled():
        figure, axes = panels(len(evaluations), height=2.2, share=False)
        for evaluation, own in zip(evaluations, axes, strict=True):
            _panel(own, evaluation)
        figure.legend(*axes[0].get_legend_handles_labels(), loc="outside upper right", ncols=3)
        figure.supylabel("density", fontsize=9)
    return Picture(key, "Score histograms", _CAPTION, figure)


def _panel(axes: Axes, evaluation: Evaluation) -> None:
    name, score = best_score(evaluation)
    outputs = {"in_domain": evaluation.test, **evaluation.groups}
    scores = {kind: score(arrays).numpy() for kind, arrays in outputs.items()}
    # a few extreme samples must not squeeze all others into one bar
    low, high = np.percentile(np.concatenate([*scores.values()]), [0.5, 99.5])
    edges = np.linspace(low, high if high > low else low + 1, 41).tolist()
    for kind, values in scores.items():
        axes.hist(
            np.clip(values, edges[0], edges[-1]), edges, density=True, histtype="stepfilled",
            facecolor=(KINDS[kind].colour, 0.3), edgecolor=KINDS[kind].colour, lw=1.2,
            label=KINDS[kind].title,
        )  # fmt: skip
    axes.set(title=plain(evaluation.method), xlabel=name)
    axes.grid(axis="x", visible=False)
