"""Paired differences of AUROC between two detectors, with a bootstrap over samples and seeds."""

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import torch
from scipy import stats
from torch import Tensor

from dpn_plugin.errors import UserError
from dpn_plugin.metrics.intervals import share_below
from dpn_plugin.metrics.ood import check_scores

_LEVEL = 0.95
#: numbers in one block of resampling weights, which bounds the memory (64 MB)
_BLOCK = 2**24


@dataclass(frozen=True)
class PairedDifference:
    """
    The AUROC of one detector minus that of another, with its 95 % interval, as fractions.

    :param difference: the mean over seeds
    :param low: lower end
    :param high: upper end
    :param seeds: the number of seeds; the interval of one says nothing about training again
    """

    difference: float
    low: float
    high: float
    seeds: int

    @property
    def verdict(self) -> str:
        """``"ahead"``, ``"behind"``, or ``"undecided"`` if the interval holds zero."""
        if self.low > 0:
            return "ahead"
        return "behind" if self.high < 0 else "undecided"


@dataclass(frozen=True)
class Placements:
    r"""
    The scores of one detector as the shares of the other side that they are placed above.

    :param inside: :math:`a_{si}`, shape S x N: the share of OOD samples that score above in-domain
        sample :math:`i` with the network of seed :math:`s`, averaged over OOD sets
    :param outside: :math:`b_{skj}`, one array S x M for every OOD set :math:`k`: the share of
        in-domain samples that score below sample :math:`j`
    """

    inside: np.ndarray
    outside: tuple[np.ndarray, ...]

    @property
    def auroc(self) -> np.ndarray:
        """The mean AUROC over OOD sets, for every seed."""
        return np.mean([each.mean(axis=1, dtype=np.float64) for each in self.outside], axis=0)

    def __sub__(self, other: "Placements") -> "Placements":
        outside = zip(self.outside, other.outside, strict=True)
        return Placements(self.inside - other.inside, tuple(a - b for a, b in outside))


def find_placements(
    in_scores: Sequence[Tensor], out_scores: Sequence[Sequence[Tensor]]
) -> Placements:
    """
    Return the placements of a detector's scores; equal scores count half.

    :param in_scores: scores of in-domain samples, shape (N,), for every seed
    :param out_scores: for every seed, the scores of every OOD set, each of shape (M,)
    :raises UserError: if seeds or sets are missing, differ in size, or scores are not finite
    """
    if not in_scores or len(in_scores) != len(out_scores):
        raise UserError(
            f"in_scores and out_scores must be of the same seeds, at least one: there are "
            f"{len(in_scores)} and {len(out_scores)}."
        )
    found = [_of_one_seed(*each) for each in zip(in_scores, out_scores, strict=True)]
    shapes = {tuple(len(part) for part in (a, *b)) for a, b in found}
    if len(shapes) > 1:
        raise UserError(f"All seeds must be scored on the same samples, not on {sorted(shapes)}.")
    outside = zip(*(b for _, b in found), strict=True)
    return Placements(np.stack([a for a, _ in found]), tuple(map(np.stack, outside)))


def paired_differences(
    reference: Placements,
    others: Sequence[Placements],
    *,
    replicates: int = 500,
    seed: int = 0,
) -> list[PairedDifference]:
    r"""
    Return the AUROC of the reference minus that of each of the others, with 95 % intervals.

    Each replicate draws in-domain samples, the samples of every OOD set, and seeds with
    replacement: the same ones for both detectors, and the same samples for all seeds. The AUROC of
    a replicate with counts :math:`w_i` and :math:`v_{kj}` is taken to first order,

    .. math:: A^* \approx \frac{1}{N} \sum_i w_i a_i
        + \frac{1}{K} \sum_k \frac{1}{M_k} \sum_j v_{kj} b_{kj} - A,

    so that all replicates of all detectors are products of matrices. The interval is
    :math:`d \pm t \, s` with the standard deviation :math:`s` over replicates. The quantile
    :math:`t` has the degrees of freedom of Welch and Satterthwaite: two of three seeds if the
    spread over seeds is all there is, many if that over samples is.

    .. note:: One seed less than there are is drawn. That makes the variance unbiased (Rao and Wu,
        *Resampling Inference With Complex Survey Data*); drawing all would give two thirds of it
        for three seeds. With one seed, only samples are drawn.

    :param reference: placements of the detector that is compared
    :param others: of the same seeds and samples
    :param replicates: how many
    :param seed: of the random numbers
    :raises UserError: if seeds or samples differ
    """
    for each in others:
        _check_pair(reference, each)
    parts = [reference - each for each in others]
    drawn = _replicates(parts, replicates, seed) if parts else []
    return [_interval(each.auroc, own) for each, own in zip(parts, drawn, strict=True)]


def _of_one_seed(
    in_scores: Tensor, out_scores: Sequence[Tensor]
) -> tuple[np.ndarray, list[np.ndarray]]:
    if not out_scores:
        raise UserError("out_scores: give the scores of at least one OOD set.")
    inside = check_scores("in_scores", in_scores)
    sets = [check_scores("out_scores", scores) for scores in out_scores]
    above = torch.stack([1 - share_below(scores, inside) for scores in sets]).mean(dim=0)
    below = [share_below(inside, scores).float().numpy() for scores in sets]
    return above.float().numpy(), below


def _check_pair(one: Placements, other: Placements) -> None:
    shapes = [[each.inside.shape, *(part.shape for part in each.outside)] for each in (one, other)]
    if shapes[0] != shapes[1]:
        raise UserError(
            "A paired difference needs the same seeds and samples on both sides: their scores "
            f"have shapes {shapes[0]} and {shapes[1]}."
        )


def _replicates(parts: Sequence[Placements], replicates: int, seed: int) -> list[np.ndarray]:
    """Return the replicates of every difference, each an array of their number."""
    random = np.random.default_rng(seed)
    seeds, sets = len(parts[0].inside), len(parts[0].outside)
    deviations = _deviations([each.inside for each in parts], replicates, random)
    for index in range(sets):
        own = [each.outside[index] for each in parts]
        deviations += _deviations(own, replicates, random) / sets
    # one seed less, see paired_differences; with one seed, that one
    drawn = random.integers(seeds, size=(max(1, seeds - 1), replicates))
    columns = np.arange(replicates)
    return [
        np.mean([each.auroc[rows] + own[rows, columns] for rows in drawn], axis=0)
        for each, own in zip(parts, deviations, strict=True)
    ]


def _deviations(
    arrays: Sequence[np.ndarray], replicates: int, random: np.random.Generator
) -> np.ndarray:
    """
    Return by how much resampling moves the means of placements.

    :param arrays: for every detector the placements of every seed, S x N
    :return: shape (detectors, S, replicates)
    """
    joined = np.concatenate(arrays)
    values = (joined - joined.mean(axis=1, keepdims=True)).T
    size = len(values)
    block = max(1, _BLOCK // size)
    found = [
        _counts(size, min(block, replicates - start), random) @ values / size
        for start in range(0, replicates, block)
    ]
    return np.concatenate(found).T.reshape(len(arrays), -1, replicates)


def _counts(size: int, replicates: int, random: np.random.Generator) -> np.ndarray:
    """Return how often each of ``size`` samples is drawn in every replicate."""
    drawn = (random.integers(size, size=size) for _ in range(replicates))
    return np.stack([np.bincount(each, minlength=size) for each in drawn]).astype(np.float32)


def _interval(estimates: np.ndarray, drawn: np.ndarray) -> PairedDifference:
    seeds, estimate = len(estimates), float(estimates.mean())
    total = float(drawn.var(ddof=1))
    of_seeds = float(estimates.var(ddof=1)) / seeds if seeds > 1 else 0.0
    freedom = math.inf
    if of_seeds > 0:
        # never fewer than those of the seeds alone: both variances are estimates
        freedom = (seeds - 1) * max(1.0, (total / of_seeds) ** 2)
    margin = float(stats.t.ppf((1 + _LEVEL) / 2, freedom)) * math.sqrt(max(total, of_seeds))
    return PairedDifference(estimate, estimate - margin, estimate + margin, seeds)
