"""
Scores of detectors that cannot be traced as they are, written as plain tensor operations.

They compute what the detectors compute; exporting compares both. ``GaussianKL`` branches on values
and solves triangular systems, ``KNN`` asks scikit-learn, ``Mahalanobis`` and ``NCI`` use ``.data``,
which tracing takes for a constant, and ``Entropy`` clips on both sides, which torch's exporter
cannot decompose.
"""

import math
from collections.abc import Callable
from typing import Any

import torch
from pytorch_ood.detector import KNN, NCI, Entropy, Mahalanobis
from torch import Tensor
from torch.nn import functional as F

from dpn_plugin.detectors import GaussianKL, representation

Score = Callable[[Tensor], Tensor]


def rewritten(detector: Any) -> Score | None:
    """
    Return a function that scores logits or features like a detector, ``None`` if it needs none.

    :param detector: fitted
    """
    # of exactly this class: a derived one may compute something else
    rewrite = _REWRITTEN.get(type(detector))
    return None if rewrite is None else rewrite(detector)


def _gaussian_kl(detector: GaussianKL) -> Score:
    means, factors, shares = detector.means, detector.factors, detector.shares
    assert means is not None
    assert factors is not None
    assert shares is not None
    inverse = torch.linalg.inv(factors)
    logdet = factors.diagonal(dim1=1, dim2=2).log().sum(dim=1)
    constant = shares.log() - logdet - math.log(2 * math.pi)
    has_ood = bool(shares[2] > 0)

    def score(logits: Tensor) -> Tensor:
        centred = representation(logits)[:, None, :] - means
        scaled = (inverse * centred[:, :, None, :]).sum(dim=-1)
        densities = constant - 0.5 * scaled.square().sum(dim=-1)
        in_domain = torch.logsumexp(densities[:, :2], dim=1)
        return densities[:, 2] - in_domain if has_ood else -in_domain

    return score


def _knn(detector: KNN) -> Score:
    known = torch.from_numpy(detector.knn._fit_X).double()
    squares = known.square().sum(dim=1)

    def score(features: Tensor) -> Tensor:
        z = features.double()
        if detector.normalize:
            z = z / z.norm(dim=1, keepdim=True).clamp(min=1e-12)
        distances = squares + z.square().sum(dim=1, keepdim=True) - 2 * z @ known.T
        nearest = torch.topk(distances, detector.k, dim=1, largest=False).values
        return nearest[:, -1].clamp(min=0).sqrt()

    return score


def _mahalanobis(detector: Mahalanobis) -> Score:
    means, precision = detector.mu, detector.precision

    def score(features: Tensor) -> Tensor:
        centred = features[:, None, :].to(means.dtype) - means
        return 0.5 * ((centred @ precision) * centred).sum(dim=-1).amin(dim=1)

    return score


def _nci(detector: NCI) -> Score:
    weight, mean = detector.head.weight.detach().clone(), detector.global_mean
    bias = detector.head.bias
    bias = None if bias is None else bias.detach().clone()

    def score(features: Tensor) -> Tensor:
        features = features.float()
        chosen = weight[F.linear(features, weight, bias).argmax(dim=1)]
        centred = features - mean
        found = -detector._cos(centred, chosen)
        if detector.alpha > 0:
            found = found - detector.alpha * features.abs().sum(dim=1)
        return found

    return score


def _entropy(detector: Entropy) -> Score:
    def score(logits: Tensor) -> Tensor:
        p = torch.softmax(logits, dim=1).clamp(min=1e-7)
        return -(p.log() * p).sum(dim=1)

    return score


_REWRITTEN: dict[type, Callable[[Any], Score]] = {
    GaussianKL: _gaussian_kl,
    KNN: _knn,
    Mahalanobis: _mahalanobis,
    NCI: _nci,
    Entropy: _entropy,
}
