"""Selective classification: how often a classifier errs on the samples that it does not reject."""

from dataclasses import dataclass

import torch
from torch import Tensor

from dpn_plugin.errors import UserError
from dpn_plugin.metrics.ood import check_scores

#: the risks at which the coverage is reported
RISKS = (0.01, 0.05, 0.1)


@dataclass(frozen=True)
class RiskCoverage:
    """
    Risk against coverage, from the least to the most uncertain sample.

    Coverage is the share of samples that are accepted. Samples with equal scores are accepted
    together; between them, the curve is that of the mean over all their orders.

    :param coverage: :math:`k / n` for :math:`k = 1, \\dots, n`
    :param risk: the share of errors among the :math:`k` accepted samples
    :param generalized_risk: the share of accepted errors among all samples
    :param is_threshold: whether some threshold of the score accepts exactly these samples
    """

    coverage: Tensor
    risk: Tensor
    generalized_risk: Tensor
    is_threshold: Tensor


def risk_coverage(
    scores: Tensor, correct: Tensor, out_scores: Tensor | None = None
) -> RiskCoverage:
    """
    Return risk against coverage; an OOD sample that is accepted is an error.

    :param scores: of in-domain samples, shape (N,); the largest are rejected first
    :param correct: whether each was classified correctly, boolean, shape (N,)
    :param out_scores: of OOD samples, shape (M,)
    :raises UserError: if the shapes differ, there are no scores, or some are not finite
    """
    scores, wrong = check_scores("scores", scores), ~correct.cpu().bool()
    if wrong.shape != scores.shape:
        raise UserError(f"correct has shape {tuple(wrong.shape)}, scores {tuple(scores.shape)}.")
    if out_scores is not None:
        out_scores = check_scores("out_scores", out_scores)
        scores = torch.cat([scores, out_scores])
        wrong = torch.cat([wrong, torch.ones(len(out_scores), dtype=torch.bool)])
    ordered, order = scores.sort()
    _, group, sizes = torch.unique_consecutive(ordered, return_inverse=True, return_counts=True)
    errors = torch.zeros(len(sizes), dtype=torch.float64)
    errors.index_add_(0, group, wrong[order].double())
    accepted = torch.arange(1, len(scores) + 1, dtype=torch.float64)
    wrongly = (errors / sizes)[group].cumsum(dim=0)
    last = torch.zeros(len(scores), dtype=torch.bool)
    last[sizes.cumsum(dim=0) - 1] = True
    n = len(scores)
    return RiskCoverage(accepted / n, wrongly / accepted, wrongly / n, last)


def selective_metrics(
    scores: Tensor, correct: Tensor, out_scores: Tensor | None = None
) -> dict[str, float]:
    """
    Return ``aurc``, ``augrc`` and ``coverage@RISK`` of selective classification, as fractions.

    With ``out_scores`` the task is selective classification in the presence of OOD samples (SCOD):
    every OOD sample is an error, and the figures depend on how many of them there are.

    ``aurc``
        area under risk and coverage, lower is better
    ``augrc``
        area under generalized risk and coverage: Traub et al., *Overcoming Common Flaws in the
        Evaluation of Selective Classification Systems*; lower is better
    ``coverage@0.05``
        the largest coverage that a threshold reaches with a risk of at most 0.05; 0 if there is
        none. Higher is better

    .. note:: Areas are trapezoids from coverage :math:`1/n` to 1, divided by the length of that
        range, as in torch-uncertainty. Where equal scores make the order of samples arbitrary, the
        mean over all orders is returned.

    :param scores: of in-domain samples, shape (N,); larger means more uncertain
    :param correct: whether each was classified correctly, boolean, shape (N,)
    :param out_scores: of OOD samples, shape (M,)
    :raises UserError: if the shapes differ, there are no scores, or some are not finite
    """
    curve = risk_coverage(scores, correct, out_scores)
    found = {"aurc": _mean_height(curve.risk), "augrc": _mean_height(curve.generalized_risk)}
    for risk in RISKS:
        reached = curve.coverage[curve.is_threshold & (curve.risk <= risk)]
        found[f"coverage@{risk:g}"] = float(reached.max()) if len(reached) else 0.0
    return found


def _mean_height(values: Tensor) -> float:
    """Return the area under equidistant values, by trapezoids, divided by its width."""
    if len(values) == 1:
        return float(values[0])
    return float((values[1:] + values[:-1]).sum()) / (2 * (len(values) - 1))
