r"""
Measures of the Dirichlet distribution with concentrations :math:`\alpha_c = e^{z_c}`.

Everything is computed from the logits :math:`z`, never from :math:`\alpha` clipped or rounded
first. With the winning class :math:`m` and :math:`s = \sum_{c \neq m} e^{z_c - z_m}`, every measure
is a sum without cancellation: the smallest uncertainty of a confident sample keeps its digits, and
so does the largest one of a sample far away.
"""

import math
from typing import NamedTuple

import torch
from torch import Tensor

from dpn_plugin.functional.beta import entropy_near_uniform
from dpn_plugin.functional.logits import by_class
from dpn_plugin.functional.special import Remainders, remainders, winner_gap

__all__ = [
    "DirichletMeasures",
    "differential_entropy",
    "dirichlet_measures",
    "entropy",
    "log_neg_differential_entropy",
    "log_precision",
    "max_p",
    "mutual_information",
    "one_minus_max_p",
]

#: only two classes can reach a differential entropy of zero, at alpha = (1, 1); its logarithm needs
#: a floor there
FLOOR = 1e-30


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
    All six measures in one pass.

    :param logits: shape :math:`B \times K` or :math:`B \times K \times H \times W`; half precision
        is computed in float32
    :param compile: whether to run through :func:`torch.compile`; worth it from about a million
        logits on
    :return: the measures; memory beyond the result does not grow with :math:`B`
    :raises ValueError: if the shape does not fit or a logit is NaN or infinite
    :raises TypeError: if the logits are not floating point
    """
    return DirichletMeasures(*by_class(_all, logits, compile))


def max_p(logits: Tensor) -> Tensor:
    r""":return: Max.P, :math:`\max_c p_c = 1 / (1 + s)`"""
    return by_class(_max_p, logits)[0]


def one_minus_max_p(logits: Tensor) -> Tensor:
    r""":return: :math:`1 - \max_c p_c = s / (1 + s)`; confident samples do not tie"""
    return by_class(_one_minus_max_p, logits)[0]


def entropy(logits: Tensor) -> Tensor:
    r""":return: :math:`-\sum_c p_c \ln p_c`"""
    return by_class(_entropy, logits)[0]


def mutual_information(logits: Tensor) -> Tensor:
    r""":return: :math:`\sum_c p_c\, g(\alpha_c) - g(\alpha_0)`, :math:`g(a) = \psi(a+1) - \ln a`"""
    return by_class(_mutual_information, logits)[0]


def log_precision(logits: Tensor) -> Tensor:
    r""":return: :math:`\ln \alpha_0 = \operatorname{logsumexp}(z)`"""
    return by_class(_log_precision, logits)[0]


def differential_entropy(logits: Tensor) -> Tensor:
    r"""
    :return: D.Ent, at most :math:`-\ln\Gamma(K)`; the value grows like :math:`-1/\min_c \alpha_c`
        and is minus infinity once that is beyond the type, at logits below -88 in float32
    """
    return by_class(_differential_entropy, logits)[0]


def log_neg_differential_entropy(logits: Tensor) -> Tensor:
    r""":return: :math:`\ln(-\text{D.Ent})`, finite for all finite logits"""
    return by_class(_differential_entropy, logits)[1]


class _Simplex(NamedTuple):
    """The mean probabilities, told from the winning class."""

    winner: Tensor  # the largest logit
    gaps: Tensor  # how far each logit is below it
    others: Tensor  # exp(-gaps), zero for the winner
    s: Tensor  # their sum; a second winner counts 1
    lse: Tensor


def _simplex(z: Tensor) -> _Simplex:
    winner = z.amax(dim=0)
    gaps = winner - z
    lost = gaps.detach().clone().gt_(0)  # 1 for every class but the winner
    others = torch.exp(-gaps) * lost
    s = others.sum(dim=0) + (len(z) - 1 - lost.sum(dim=0))
    return _Simplex(winner, gaps, others, s, winner + torch.log1p(s))


def _all(z: Tensor) -> tuple[Tensor, ...]:
    p = _simplex(z)
    each = remainders(z)
    d_ent, log_neg = _differential_entropy_of(z, p, each)
    return 1 / (1 + p.s), _entropy_of(p), _mutual_information_of(p, each), p.lse, d_ent, log_neg


def _max_p(z: Tensor) -> tuple[Tensor]:
    return (1 / (1 + _simplex(z).s),)


def _one_minus_max_p(z: Tensor) -> tuple[Tensor]:
    s = _simplex(z).s
    return (s / (1 + s),)


def _entropy(z: Tensor) -> tuple[Tensor]:
    return (_entropy_of(_simplex(z)),)


def _log_precision(z: Tensor) -> tuple[Tensor]:
    return (_simplex(z).lse,)


def _mutual_information(z: Tensor) -> tuple[Tensor]:
    return (_mutual_information_of(_simplex(z), remainders(z)),)


def _differential_entropy(z: Tensor) -> tuple[Tensor, Tensor]:
    return _differential_entropy_of(z, _simplex(z), remainders(z))


def _entropy_of(p: _Simplex) -> Tensor:
    return torch.log1p(p.s) + (p.others * p.gaps).sum(dim=0) / (1 + p.s)


def _mutual_information_of(p: _Simplex, each: Remainders) -> Tensor:
    # sum_c p_c [g(alpha_c) - g(alpha_m)] + [g(alpha_m) - g(alpha_0)]: no term is negative
    spread = (p.others * (each.g - remainders(p.winner).g)).sum(dim=0) / (1 + p.s)
    return spread + winner_gap(p.winner, p.s)


def _differential_entropy_of(z: Tensor, p: _Simplex, each: Remainders) -> tuple[Tensor, Tensor]:
    """:return: D.Ent and ln(-D.Ent)"""
    classes = len(z)
    total = remainders(p.lse)
    bounded = (
        (each.h + each.g).sum(dim=0)
        - (total.h + classes * total.g + (classes - 1) * p.lse)
        + (classes - 1) / 2 * math.log(2 * math.pi)
    )
    # minus sum_c 1/alpha_c - K/alpha_0, scaled by the smallest alpha so that it cannot overflow
    lowest = z.detach().amin(dim=0)
    poles = torch.exp(lowest - z).sum(dim=0) - classes * torch.exp(lowest - p.lse)
    d_ent = bounded - torch.exp(-lowest) * poles
    scale = torch.clamp(-lowest, min=0)
    scaled = torch.exp(-lowest - scale) * poles - torch.exp(-scale) * bounded
    log_neg = scale + torch.log(scaled.clamp(min=FLOOR))
    if classes == 2:
        near, value = entropy_near_uniform(z)
        d_ent = torch.where(near, value, d_ent)
        # of the series, not of d_ent: where that overflows, the gradient would be 0 times infinity
        log_neg = torch.where(near, torch.log((-value).clamp(min=FLOOR)), log_neg)
    return d_ent, log_neg
