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
from dpn_plugin.functional.fitted import exp
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
    return DirichletMeasures(*by_class(_all_sums, _all, logits, compile))


def max_p(logits: Tensor) -> Tensor:
    r""":return: Max.P, :math:`\max_c p_c = 1 / (1 + s)`"""
    return by_class(_mean_sums, _max_p, logits)[0]


def one_minus_max_p(logits: Tensor) -> Tensor:
    r""":return: :math:`1 - \max_c p_c = s / (1 + s)`; confident samples do not tie"""
    return by_class(_mean_sums, _max_p, logits)[1]


def entropy(logits: Tensor) -> Tensor:
    r""":return: :math:`-\sum_c p_c \ln p_c`"""
    return by_class(_mean_sums, _entropy, logits)[0]


def mutual_information(logits: Tensor) -> Tensor:
    r""":return: :math:`\sum_c p_c\, g(\alpha_c) - g(\alpha_0)`, :math:`g(a) = \psi(a+1) - \ln a`"""
    return by_class(_mutual_information_sums, _mutual_information, logits)[0]


def log_precision(logits: Tensor) -> Tensor:
    r""":return: :math:`\ln \alpha_0 = \operatorname{logsumexp}(z)`"""
    return by_class(_mean_sums, _log_precision, logits)[0]


def differential_entropy(logits: Tensor) -> Tensor:
    r"""
    :return: D.Ent, at most :math:`-\ln\Gamma(K)`; the value grows like :math:`-1/\min_c \alpha_c`
        and is minus infinity once that is beyond the type, at logits below -88 in float32
    """
    return by_class(_differential_entropy_sums, _differential_entropy, logits)[0]


def log_neg_differential_entropy(logits: Tensor) -> Tensor:
    r""":return: :math:`\ln(-\text{D.Ent})`, finite for all finite logits"""
    return by_class(_differential_entropy_sums, _differential_entropy, logits)[1]


class _Simplex(NamedTuple):
    """The mean probabilities, told from the winning class."""

    winner: Tensor  # the largest logit
    gaps: Tensor  # how far each logit is below it
    others: Tensor  # exp(-gaps), zero for the winner
    rest: Tensor  # their sum
    s: Tensor  # the same, with 1 for every further winner


def _simplex(z: Tensor) -> _Simplex:
    winner = z.amax(dim=0)
    gaps = winner - z
    lost = gaps.detach().clone().gt_(0)  # 1 for every class but the winner
    others = exp(-gaps) * lost
    rest = others.sum(dim=0)
    return _Simplex(winner, gaps, others, rest, rest + (len(z) - 1 - lost.sum(dim=0)))


# The sums over the classes, z being K x n; then what is made of them, sample by sample.


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
    # sum_c p_c [g(alpha_c) - g(alpha_m)] + [g(alpha_m) - g(alpha_0)]: neither part is negative, up
    # to a rounding that the other one exceeds; a clamp would cut the gradient of near ties
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
    """:return: D.Ent and ln(-D.Ent)"""
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
