r"""
Measures of the Dirichlet distribution with concentrations :math:`\alpha_c = e^{z_c}`.

Everything is computed from the logits :math:`z`, never from a clipped or rounded :math:`\alpha`.
With the winning class :math:`m` and :math:`s = \sum_{c \neq m} e^{z_c - z_m}`, every measure is a
sum without cancellation, so very small and very large uncertainties keep their precision.
"""

import math
from typing import NamedTuple

import torch
from torch import Tensor

from dpn_plugin.functional.fitted import exp
from dpn_plugin.functional.logits import by_class
from dpn_plugin.functional.special import (
    Remainders,
    entropy_near_uniform,
    remainders,
    winner_gap,
)

#: floor of -D.Ent before the logarithm: with two classes, D.Ent is zero at alpha = (1, 1); just
#: above the smallest normal float32, so that it changes only values that are zero up to rounding
FLOOR = 1e-37


class DirichletMeasures(NamedTuple):
    """All measures of a batch, each of shape :math:`B` (or :math:`B \\times H \\times W`)."""

    max_p: Tensor  #: the largest mean probability
    entropy: Tensor  #: the entropy of the mean probabilities
    mutual_information: Tensor  #: between the class and the probabilities
    log_precision: Tensor  #: :math:`\ln \alpha_0`
    differential_entropy: Tensor  #: of the density over the simplex, never positive
    log_neg_differential_entropy: Tensor  #: :math:`\ln(-\text{D.Ent})`


def dirichlet_measures(logits: Tensor, compile: bool = False) -> DirichletMeasures:
    r"""
    Return all six measures, computed in one pass.

    Memory beyond the result does not grow with :math:`B`.

    :param logits: shape :math:`B \times K` or :math:`B \times K \times H \times W`; half precision
        is computed in float32
    :param compile: whether to run through :func:`torch.compile`; worth it from about a million
        logits on
    :raises ValueError: if the shape does not fit or a logit is NaN or infinite
    :raises UserTypeError: if the logits are not floating point
    """
    return DirichletMeasures(*by_class(_all_sums, _all, logits, compile))


def max_p(logits: Tensor) -> Tensor:
    r"""Return Max.P, :math:`\max_c p_c = 1 / (1 + s)`."""
    return by_class(_mean_sums, _max_p, logits)[0]


def one_minus_max_p(logits: Tensor) -> Tensor:
    r"""Return :math:`1 - \max_c p_c = s / (1 + s)`, which has no ties of confident samples."""
    return by_class(_mean_sums, _max_p, logits)[1]


def entropy(logits: Tensor) -> Tensor:
    r"""Return the entropy of the mean prediction, :math:`-\sum_c p_c \ln p_c`."""
    return by_class(_mean_sums, _entropy, logits)[0]


def mutual_information(logits: Tensor) -> Tensor:
    r"""
    Return the mutual information, :math:`\sum_c p_c\, g(\alpha_c) - g(\alpha_0)` with
    :math:`g(a) = \psi(a+1) - \ln a`.
    """
    return by_class(_mutual_information_sums, _mutual_information, logits)[0]


def log_precision(logits: Tensor) -> Tensor:
    r"""Return the log of the precision, :math:`\ln \alpha_0 = \operatorname{logsumexp}(z)`."""
    return by_class(_mean_sums, _log_precision, logits)[0]


def differential_entropy(logits: Tensor) -> Tensor:
    r"""
    Return the differential entropy D.Ent, at most :math:`-\ln\Gamma(K)`.

    It behaves like :math:`-1/\min_c \alpha_c` and is minus infinity once that overflows, in float32
    for logits below -88; :func:`log_neg_differential_entropy` is finite there.
    """
    return by_class(_differential_entropy_sums, _differential_entropy, logits)[0]


def log_neg_differential_entropy(logits: Tensor) -> Tensor:
    r"""
    Return :math:`\ln(-\text{D.Ent})`, which is finite for all finite logits.

    With two classes D.Ent is zero at :math:`\alpha = (1, 1)`, and the result :math:`\ln 10^{-37}`.
    """
    return by_class(_differential_entropy_sums, _differential_entropy, logits)[1]


class _Simplex(NamedTuple):
    """The mean probabilities, relative to the winning class."""

    winner: Tensor  # the largest logit
    gaps: Tensor  # how far each logit is below it
    others: Tensor  # exp(-gaps), zero for the winner
    rest: Tensor  # their sum
    s: Tensor  # the same, plus 1 for every class that ties with the winner


def _simplex(z: Tensor) -> _Simplex:
    winner = z.amax(dim=0)
    gaps = winner - z
    lost = gaps.detach().clone().gt_(0)  # 1 for every class but the winner
    others = exp(-gaps) * lost
    rest = others.sum(dim=0)
    return _Simplex(winner, gaps, others, rest, rest + (len(z) - 1 - lost.sum(dim=0)))


# First the sums over the classes of z, K x n; then the measures, computed from these sums.


def _all_sums(z: Tensor) -> tuple[Tensor, ...]:
    p, each = _simplex(z), remainders(z)
    gaps, g = (p.others * p.gaps).sum(dim=0), (p.others * each.g).sum(dim=0)
    return p.winner, p.s, gaps, p.rest, g, *_density_sums(z, each)


def _mean_sums(z: Tensor) -> tuple[Tensor, ...]:
    p = _simplex(z)
    return p.winner, p.s, (p.others * p.gaps).sum(dim=0)


def _mutual_information_sums(z: Tensor) -> tuple[Tensor, ...]:
    p = _simplex(z)
    return p.winner, p.s, p.rest, (p.others * remainders(z).g).sum(dim=0)


def _differential_entropy_sums(z: Tensor) -> tuple[Tensor, ...]:
    p = _simplex(z)
    return p.winner, p.s, *_density_sums(z, remainders(z))


def _density_sums(z: Tensor, each: Remainders) -> tuple[Tensor, ...]:
    lowest = z.detach().amin(dim=0)
    inverse = exp(lowest - z).sum(dim=0)
    sums = lowest, each.h.sum(dim=0) + each.g.sum(dim=0), inverse
    return (*sums, entropy_near_uniform(z)) if len(z) == 2 else sums


def _all(
    classes: int, winner: Tensor, s: Tensor, gaps: Tensor, rest: Tensor, g: Tensor, *density: Tensor
) -> tuple[Tensor, ...]:
    return (
        _max_p(classes, winner, s, gaps)[0],
        *_entropy(classes, winner, s, gaps),
        *_mutual_information(classes, winner, s, rest, g),
        *_log_precision(classes, winner, s, gaps),
        *_differential_entropy(classes, winner, s, *density),
    )


def _max_p(classes: int, winner: Tensor, s: Tensor, gaps: Tensor) -> tuple[Tensor, Tensor]:
    return 1 / (1 + s), s / (1 + s)


def _entropy(classes: int, winner: Tensor, s: Tensor, gaps: Tensor) -> tuple[Tensor]:
    return (torch.log1p(s) + gaps / (1 + s),)


def _log_precision(classes: int, winner: Tensor, s: Tensor, gaps: Tensor) -> tuple[Tensor]:
    return (winner + torch.log1p(s),)


def _mutual_information(
    classes: int, winner: Tensor, s: Tensor, rest: Tensor, g: Tensor
) -> tuple[Tensor]:
    # sum_c p_c [g(alpha_c) - g(alpha_m)] + [g(alpha_m) - g(alpha_0)]: a part is negative only by
    # rounding, which the other part exceeds; a clamp would cut the gradient of near ties
    spread = (g - rest * remainders(winner).g) / (1 + s)
    return (spread + winner_gap(winner, s),)


def _differential_entropy(
    classes: int,
    winner: Tensor,
    s: Tensor,
    lowest: Tensor,
    inner: Tensor,
    inverse: Tensor,
    near: Tensor | None = None,
) -> tuple[Tensor, Tensor]:
    """Return D.Ent and ln(-D.Ent)."""
    lse = winner + torch.log1p(s)
    total = remainders(lse)
    constant = (classes - 1) / 2 * math.log(2 * math.pi)
    bounded = inner - (total.h + classes * total.g + (classes - 1) * lse) + constant
    # minus sum_c 1/alpha_c - K/alpha_0, scaled by the smallest alpha so that it cannot overflow
    poles = inverse - classes * torch.exp(lowest - lse)
    d_ent = bounded - torch.exp(-lowest) * poles
    scale = torch.clamp(-lowest, min=0)
    scaled = torch.exp(-lowest - scale) * poles - torch.exp(-scale) * bounded
    if near is not None:
        is_near = ~torch.isnan(near)
        d_ent = torch.where(is_near, near, d_ent)
        scaled = torch.where(is_near, -near * torch.exp(-scale), scaled)
    return d_ent, scale + torch.log(scaled.clamp(min=FLOOR))
