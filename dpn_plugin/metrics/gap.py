"""The representation gap: how far in-domain samples lie from OOD samples."""

import math

import torch
from torch import Tensor

from dpn_plugin.errors import UserError
from dpn_plugin.functional import gaussian_kl

__all__ = ["gaussian_gap"]


def gaussian_gap(correct: Tensor, misclassified: Tensor, ood: Tensor) -> dict[str, float]:
    """
    One bivariate Gaussian is fitted to each kind of samples, and the Kullback-Leibler divergence
    taken between in-domain and OOD. The paper leaves the direction open: both are given.

    .. note:: A Gaussian needs three points that are not on one line. Where a kind has fewer, its
        divergences are NaN.

    :param correct: points of correctly classified samples, shape (N, 2): usually Max.P and
        log(-D.Ent)
    :param misclassified: points of misclassified samples
    :param ood: points of OOD samples
    :return: ``kl_correct_ood`` is KL(correct || OOD) and ``kl_ood_correct`` KL(OOD || correct);
        ``kl_misclassified_ood`` and ``kl_ood_misclassified`` likewise
    :raises UserError: if a shape does not fit or a point is not finite
    """
    out = _gaussian("ood", ood)
    gaps = {}
    for name, points in (("correct", correct), ("misclassified", misclassified)):
        own = _gaussian(name, points)
        gaps[f"kl_{name}_ood"] = _divergence(own, out)
        gaps[f"kl_ood_{name}"] = _divergence(out, own)
    return gaps


def _divergence(first: tuple[Tensor, Tensor] | None, second: tuple[Tensor, Tensor] | None) -> float:
    if first is None or second is None:
        return math.nan
    return float(gaussian_kl(*first, *second))


def _gaussian(name: str, points: Tensor) -> tuple[Tensor, Tensor] | None:
    if points.dim() != 2 or points.shape[1] != 2:
        raise UserError(f"{name} must have shape (N, 2), got {tuple(points.shape)}.")
    if not torch.isfinite(points).all():
        raise UserError(f"{name}: some points are NaN or infinite.")
    points = points.detach().cpu().to(torch.float64)
    return None if _degenerate(points) else (points.mean(dim=0), torch.cov(points.T))


def _degenerate(points: Tensor) -> bool:
    if len(points) < 3 or (points.amax(dim=0) == points.amin(dim=0)).any():
        return True
    # in units of the spread: the two coordinates differ by orders of magnitude
    scaled = (points - points.mean(dim=0)) / points.std(dim=0)
    return int(torch.linalg.matrix_rank(scaled)) < 2
