"""What a three-class network says about a typical sample of each kind."""

from matplotlib.figure import Figure
from torch import Tensor

from dpn_plugin.functional import log_precision
from dpn_plugin.report.evaluations import Evaluation
from dpn_plugin.report.figures.simplex import draw_density
from dpn_plugin.report.figures.style import KINDS, Picture, plain, styled

__all__ = ["typical_picture"]

_CAPTION = (
    "The Dirichlet distribution of the sample with the median precision of its kind, one method a "
    "row, as log density: light is dense, the ring is the mean. Concentrations stand above."
)


def typical_picture(key: str, evaluations: list[Evaluation]) -> Picture | None:
    """:return: densities on the simplex, or ``None`` unless there are three classes"""
    shown = [each for each in evaluations if each.is_dirichlet]
    if not shown or shown[0].test["logits"].shape[1] != 3:
        return None
    with styled():
        figure = Figure(figsize=(7.5, 2.3 * len(shown)), layout="constrained")
        grid = figure.subplots(len(shown), 3, squeeze=False)
        for evaluation, row in zip(shown, grid, strict=True):
            for axes, (kind, logits) in zip(row, _kinds(evaluation).items(), strict=True):
                axes.set_axis_off()
                title = KINDS[kind].title
                if len(logits):
                    alpha = _typical(logits)
                    draw_density(axes, alpha)
                    title += f"\n({', '.join(f'{each:.3g}' for each in alpha)})"
                axes.set_title(f"{plain(evaluation.method)}: {title}", fontsize=7.5, loc="center")
    return Picture(key, "Typical Dirichlet distributions", _CAPTION, figure)


def _kinds(evaluation: Evaluation) -> dict[str, Tensor]:
    logits, correct = evaluation.test["logits"].double(), evaluation.correct
    return {
        "correct": logits[correct],
        "misclassified": logits[~correct],
        "ood": evaluation.ood["logits"].double(),
    }


def _typical(logits: Tensor) -> list[float]:
    order = log_precision(logits).argsort()
    # beyond e^20 a density is a point, whatever its concentrations
    return logits[order[len(order) // 2]].clamp(-20, 20).exp().tolist()
