"""Confidence intervals of the AUROC: how far chance in the choice of test samples moves it."""

import math
from dataclasses import dataclass
from statistics import NormalDist

import torch
from torch import Tensor

from dpn_plugin.errors import UserError
from dpn_plugin.metrics.ood import check_scores

_LEVEL = 0.95


@dataclass(frozen=True)
class AurocInterval:
    """
    An AUROC with its 95 % confidence interval, as fractions.

    :param auroc: the estimate
    :param low: lower end, at least 0
    :param high: upper end, at most 1
    """

    auroc: float
    low: float
    high: float


def auroc_interval(in_scores: Tensor, *out_scores: Tensor) -> AurocInterval:
    r"""
    Return the mean AUROC over OOD sets with the 95 % interval of DeLong, DeLong and Clarke-Pearson,
    *Comparing the Areas under Two or More Correlated Receiver Operating Characteristic Curves*.

    With :math:`a_i`, the share of OOD samples that score above in-domain sample :math:`i` (averaged
    over the sets), and :math:`b_{kj}`, the share of in-domain samples that score below sample
    :math:`j` of set :math:`k`, where equal scores count half,

    .. math:: \operatorname{Var} = \frac{s^2(a)}{N} + \frac{1}{K^2} \sum_k \frac{s^2(b_k)}{M_k}

    Sorting makes it :math:`O(n \log n)`. The networks are taken as given: the interval says nothing
    about other seeds.

    .. note:: Samples without a single mistake have variance 0. Then the lower end is the exact one
        (Clopper-Pearson) of as many independent pairs as the smallest set has samples.

    :param in_scores: scores of in-domain samples, shape (N,); larger means more likely OOD
    :param out_scores: scores of one or several OOD sets, each of shape (M,)
    :raises UserError: if there is no OOD set, or a set has fewer than two scores or scores that are
        not finite
    """
    if not out_scores:
        raise UserError("out_scores: give the scores of at least one OOD set.")
    in_scores = _check("in_scores", in_scores)
    sets = [_check("out_scores", scores) for scores in out_scores]
    below = [share_below(in_scores, scores) for scores in sets]
    above = torch.stack([1 - share_below(scores, in_scores) for scores in sets]).mean(dim=0)
    variance = _variance_of_mean(above) + sum(map(_variance_of_mean, below)) / len(sets) ** 2
    auroc = sum(float(shares.mean()) for shares in below) / len(sets)
    return _interval(auroc, variance, min(len(in_scores), *map(len, sets)))


def auroc_interval_from_counts(auroc: float, n_in: int, n_out: int) -> AurocInterval:
    r"""
    Return an AUROC with the 95 % interval of Hanley and McNeil, *The Meaning and Use of the Area
    under a Receiver Operating Characteristic (ROC) Curve*, for which no scores are needed.

    .. math:: \operatorname{Var} = \frac{A (1 - A) + (M - 1)(Q_1 - A^2) + (N - 1)(Q_2 - A^2)}{N M},
        \quad Q_1 = \frac{A}{2 - A}, \quad Q_2 = \frac{2 A^2}{1 + A}

    .. note:: :math:`Q_1` and :math:`Q_2` are those of exponentially distributed scores, an
        approximation: use :func:`auroc_interval` where the scores are known. An AUROC of 1 or 0 is
        treated as there.

    :param auroc: between 0 and 1
    :param n_in: the number :math:`N` of in-domain samples
    :param n_out: the number :math:`M` of OOD samples
    :raises UserError: if the AUROC lies outside of 0 to 1, or there are no samples
    """
    if not 0 <= auroc <= 1:
        raise UserError(f"auroc must lie between 0 and 1, got {auroc:g}.")
    if n_in < 1 or n_out < 1:
        raise UserError(f"n_in and n_out must be at least 1, got {n_in} and {n_out}.")
    square = auroc**2
    q1, q2 = auroc / (2 - auroc), 2 * square / (1 + auroc)
    total = auroc * (1 - auroc) + (n_out - 1) * (q1 - square) + (n_in - 1) * (q2 - square)
    return _interval(auroc, total / (n_in * n_out), min(n_in, n_out))


def _check(name: str, scores: Tensor) -> Tensor:
    scores = check_scores(name, scores)
    if len(scores) < 2:
        raise UserError(f"{name}: an interval needs at least two scores, got {len(scores)}.")
    return scores


def share_below(scores: Tensor, values: Tensor) -> Tensor:
    """Return for each value the share of the scores that are below it; equal ones count half."""
    ordered = scores.sort().values
    below = torch.searchsorted(ordered, values)
    not_above = torch.searchsorted(ordered, values, right=True)
    return (below + not_above).double() / (2 * len(scores))


def _variance_of_mean(shares: Tensor) -> float:
    return float(shares.var()) / len(shares)


def _interval(auroc: float, variance: float, pairs: int) -> AurocInterval:
    if auroc in (0.0, 1.0):
        # all of `pairs` independent pairs are ordered alike
        bound = ((1 - _LEVEL) / 2) ** (1 / pairs)
        return AurocInterval(auroc, *((bound, 1.0) if auroc == 1 else (0.0, 1 - bound)))
    margin = NormalDist().inv_cdf((1 + _LEVEL) / 2) * math.sqrt(max(variance, 0.0))
    return AurocInterval(auroc, max(auroc - margin, 0.0), min(auroc + margin, 1.0))
