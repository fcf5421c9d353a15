"""From scores to decisions: conformal p-values, thresholds, and discoveries in a batch."""

import math

import numpy as np
import torch
from scipy.stats import binom, false_discovery_control
from torch import Tensor

from dpn_plugin.errors import UserError
from dpn_plugin.metrics.ood import check_scores


def conformal_p_values(calibration: Tensor, scores: Tensor) -> Tensor:
    r"""
    Return the conformal p-value of each score, float64, shape (M,).

    .. math:: p(s) = \frac{1 + \#\{i : c_i \ge s\}}{n + 1}

    A new sample that is exchangeable with the calibration samples has :math:`p \le \alpha` with
    probability at most :math:`\alpha`, over the draw of both, whatever the detector: Bates et al.,
    *Testing for Outliers with Conformal p-values*.

    :param calibration: scores of in-domain samples that neither the network nor the detector was
        fitted to, shape (n,); larger means more likely OOD
    :param scores: of new samples, shape (M,); M may be 0, and a score may be infinite
    :raises UserError: if there are no calibration scores, some of them are not finite, or a new
        score is NaN
    """
    ordered = check_scores("calibration", torch.as_tensor(calibration)).sort().values
    scores = _check_new("scores", scores)
    not_below = len(ordered) - torch.searchsorted(ordered, scores)
    return (1 + not_below).double() / (len(ordered) + 1)


def conformal_threshold(
    calibration: Tensor, alpha: float, confidence: float | None = None
) -> float:
    r"""
    Return the score above which a sample is rejected.

    Without ``confidence``, a sample is above the threshold exactly if its
    :func:`conformal_p_values` is at most ``alpha``: a new in-domain sample is rejected with
    probability at most ``alpha`` on average over calibration draws. A single draw may be unlucky.
    With ``confidence``, at most ``alpha`` of all in-domain samples are rejected with that
    probability over the draw: the threshold is the :math:`j`-th largest calibration score for the
    largest :math:`j` with :math:`P(\mathrm{Bin}(n, \alpha) \ge j) \ge` ``confidence``, since the
    share of in-domain samples above it is at most :math:`\mathrm{Beta}(j, n + 1 - j)`.

    :param calibration: scores of calibration samples, as in :func:`conformal_p_values`
    :param alpha: the share of in-domain samples that may be rejected, between 0 and 1
    :param confidence: the probability, over the draw of the calibration samples, with which the
        promise is to hold, between 0 and 1; ``None`` for the promise on average
    :raises UserError: if there are too few calibration scores; the message says how many are needed
    """
    ordered = check_scores("calibration", torch.as_tensor(calibration)).sort().values
    rank = _rank(len(ordered), alpha, confidence)
    if rank < 1:
        raise _too_few("", len(ordered), alpha, confidence)
    return float(ordered[-rank])


def conformal_p_values_by_class(
    calibration: Tensor, calibration_classes: Tensor, scores: Tensor, classes: Tensor
) -> Tensor:
    r"""
    Return conformal p-values within each predicted class (Mondrian), float64, shape (M,).

    A new in-domain sample has :math:`p \le \alpha` with probability at most :math:`\alpha` among
    the samples that are predicted as its class. A class without calibration samples has
    :math:`p = 1`: nothing in it can be rejected.

    :param calibration: scores of calibration samples, shape (n,)
    :param calibration_classes: the predicted classes of these samples, integers, shape (n,)
    :param scores: of new samples, shape (M,)
    :param classes: the predicted classes of these samples, integers, shape (M,)
    :raises UserError: as :func:`conformal_p_values`, or if shapes differ
    """
    calibration = check_scores("calibration", torch.as_tensor(calibration))
    scores = _check_new("scores", scores)
    known = _check_classes("calibration_classes", calibration_classes, calibration)
    classes = _check_classes("classes", classes, scores)
    p_values = torch.ones_like(scores)
    for label in torch.unique(known):
        chosen = classes == label
        p_values[chosen] = conformal_p_values(calibration[known == label], scores[chosen])
    return p_values


def conformal_thresholds_by_class(
    calibration: Tensor,
    calibration_classes: Tensor,
    alpha: float,
    num_classes: int,
    confidence: float | None = None,
) -> Tensor:
    """
    Return the :func:`conformal_threshold` of every predicted class, float64, shape (K,).

    The promise holds within each class; with ``confidence``, for each class with that probability,
    not for all of them at once.

    :param calibration: scores of calibration samples, shape (n,)
    :param calibration_classes: the predicted classes of these samples, integers, shape (n,)
    :param alpha: the share of in-domain samples of a predicted class that may be rejected
    :param num_classes: the number K of classes
    :param confidence: as in :func:`conformal_threshold`
    :raises UserError: if a class has too few calibration scores, with the class and how many are
        needed
    """
    calibration = check_scores("calibration", torch.as_tensor(calibration))
    known = _check_classes("calibration_classes", calibration_classes, calibration)
    thresholds = []
    for label in range(num_classes):
        ordered = calibration[known == label].sort().values
        rank = _rank(len(ordered), alpha, confidence)
        if rank < 1:
            raise _too_few(f"predicted class {label}: ", len(ordered), alpha, confidence)
        thresholds.append(ordered[-rank])
    return torch.stack(thresholds)


def required_calibration(alpha: float, confidence: float | None = None) -> int:
    """
    Return the smallest number of calibration samples that :func:`conformal_threshold` accepts.

    :param alpha: the share of in-domain samples that may be rejected, between 0 and 1
    :param confidence: as in :func:`conformal_threshold`
    :raises UserError: if ``alpha`` or ``confidence`` is not between 0 and 1
    """
    _check_level("alpha", alpha)
    if confidence is None:
        guess = math.ceil(1 / alpha) - 1
    else:
        _check_level("confidence", confidence)
        guess = math.ceil(math.log1p(-confidence) / math.log1p(-alpha))
    # rounding moves the guess by one at most
    return next(n for n in (guess - 1, guess, guess + 1) if n and _rank(n, alpha, confidence) >= 1)


def benjamini_hochberg(p_values: Tensor, fdr: float) -> Tensor:
    """
    Return which samples of a batch are rejected by Benjamini and Hochberg, boolean, shape (M,).

    Of the rejected samples, at most the share ``fdr`` is in-domain in expectation. Conformal
    p-values of one batch share their calibration samples; this makes them positively dependent
    (PRDS), for which the promise still holds: Bates et al.

    :param p_values: of one batch, shape (M,); M may be 0
    :param fdr: the false discovery rate, between 0 and 1
    :raises UserError: if a p-value or the rate is not between 0 and 1
    """
    _check_level("fdr", fdr)
    values = _check_new("p_values", p_values)
    if not len(values):
        return torch.zeros(0, dtype=torch.bool)
    if values.min() < 0 or values.max() > 1:
        low, high = float(values.min()), float(values.max())
        raise UserError(f"p_values must lie between 0 and 1, got {low:g} to {high:g}.")
    return torch.from_numpy(np.asarray(false_discovery_control(values.numpy(), method="bh")) <= fdr)


def _rank(n: int, alpha: float, confidence: float | None) -> int:
    """Return which of ``n`` scores, counted from the largest, is the threshold; 0 if none is."""
    _check_level("alpha", alpha)
    if confidence is None:
        # the same division as in conformal_p_values: 0.29 * 100 is below 29, 29 / 100 is not
        near = math.floor(alpha * (n + 1))
        return max(rank for rank in (near - 1, near, near + 1) if rank / (n + 1) <= alpha)
    _check_level("confidence", confidence)
    # P(Bin >= j) >= confidence <=> P(Bin <= j - 1) <= 1 - confidence
    near = int(binom.ppf(1 - confidence, n, alpha))
    ranks = [rank for rank in range(near + 2) if binom.sf(rank - 1, n, alpha) >= confidence]
    return max(ranks, default=0)


def _too_few(where: str, n: int, alpha: float, confidence: float | None) -> UserError:
    promise = "" if confidence is None else f" with confidence {confidence:g}"
    needed = required_calibration(alpha, confidence)
    return UserError(
        f"calibration: {where}alpha = {alpha:g}{promise} needs at least {needed} calibration "
        f"samples, and there are {n}."
    )


def _check_level(name: str, value: float) -> None:
    if not 0 < value < 1:
        raise UserError(f"{name} must lie between 0 and 1, got {value:g}.")


def _check_new(name: str, values: Tensor) -> Tensor:
    values = torch.as_tensor(values).detach().cpu().to(torch.float64).contiguous()
    if values.dim() != 1:
        raise UserError(f"{name} must be a vector, got shape {tuple(values.shape)}.")
    broken = int(values.isnan().sum())
    if broken:
        raise UserError(f"{name}: {broken} of {len(values)} are NaN.")
    return values


def _check_classes(name: str, classes: Tensor, scores: Tensor) -> Tensor:
    classes = torch.as_tensor(classes).cpu()
    if classes.shape != scores.shape or classes.is_floating_point():
        raise UserError(
            f"{name} must be {len(scores)} integers, one per score; got {classes.dtype} of shape "
            f"{tuple(classes.shape)}."
        )
    return classes.long()
