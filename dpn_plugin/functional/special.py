r"""
Special functions of :math:`a = e^z`, evaluated from :math:`z` so that no digit is lost.

Differences of gamma functions lose every digit once the leading Stirling terms cancel. The
functions here are what is left when these terms are taken away by hand:

.. math::
    q(a) = \ln a - \psi(a), \quad
    g(a) = \psi(a + 1) - \ln a = 1/a - q(a), \quad
    r(a) = \ln\Gamma(a) - \bigl[(a - \tfrac12) \ln a - a + \tfrac12 \ln 2\pi\bigr]

In float32 two polynomials give them (:mod:`dpn_plugin.functional.fitted`). In float64 they are, for
:math:`a \geq 9`, series in :math:`1/a`; below, the argument is shifted by 9 with the recurrences of
:math:`\psi` and :math:`\ln\Gamma`. All are plain tensor operations, so the functions export,
compile and differentiate.
"""

import math
from typing import NamedTuple

import torch
from torch import Tensor

from dpn_plugin.functional.fitted import (
    divided_difference,
    fitted_remainders,
    fitted_winner_gap,
    polynomial,
)

__all__ = ["Remainders", "log_minus_digamma", "remainders", "winner_gap"]

# psi(x) = ln x - 1/(2x) - sum_k B_2k/(2k) x^-2k  and
# ln Gamma(x) = Stirling + sum_k B_2k/(2k(2k-1)) x^(1-2k)
_DIGAMMA = (1 / 12, -1 / 120, 1 / 252, -1 / 240, 1 / 132, -691 / 32760, 1 / 12, -3617 / 8160)
_LGAMMA = (1 / 12, -1 / 360, 1 / 1260, -1 / 1680, 1 / 1188, -691 / 360360, 1 / 156, -3617 / 122400)
# the border: smaller arguments are shifted by it. Beyond it the neglected terms are below the
# rounding of the sums that the series enter
_SHIFT = 9


class Remainders(NamedTuple):
    r"""What is left of the gamma functions at :math:`a = e^z` without their Stirling terms."""

    g: Tensor  #: :math:`\psi(a + 1) - \ln a`, positive and falling
    h: Tensor  #: :math:`r(a) + a\, q(a) + z/2`


def remainders(z: Tensor) -> Remainders:
    """
    :param z: logarithms of the arguments, any shape, float32 or float64
    :return: both remainders
    """
    if z.dtype == torch.float32:
        return Remainders(*fitted_remainders(z))
    small = _below_border(z)
    t = _blend(-z, z, small).exp_()  # a where it is small, 1/a where it is large
    a = t * small
    x = a + _SHIFT
    u = _blend(t, x.reciprocal(), small)
    square = u * u
    aq = (polynomial(_DIGAMMA, square) * u).add_(0.5)
    lgamma_tail = polynomial(_LGAMMA, square) * u
    lost, log_product = _recurrences(a)
    lost = lost + aq * u
    log_x = torch.log(x)
    h_small = torch.add(a * lost - log_product + (1 - _SHIFT), log_x, alpha=_SHIFT - 0.5)
    g = _blend(u - aq * u, log_x - lost - z, small)
    return Remainders(g, _blend(torch.add(aq, z, alpha=0.5), h_small, small) + lgamma_tail)


def log_minus_digamma(z: Tensor) -> Tensor:
    r"""
    :param z: logarithms of the arguments, any shape, float32 or float64
    :return: :math:`q(a) = \ln a - \psi(a)` at :math:`a = e^z`; overflows where :math:`1/a` does
    """
    return torch.exp(-z) - remainders(z).g


def winner_gap(z: Tensor, s: Tensor) -> Tensor:
    r"""
    :math:`g(a) - g(a (1 + s))` without the cancellation for small :math:`s`.

    Every difference is written with the common factor :math:`s` in front, so that a sample whose
    winning class has nearly all the concentration keeps its digits.

    :param z: :math:`\ln a`
    :param s: what the other classes add, relative to :math:`a`; not negative
    :return: the difference, not negative, of the shape of ``z``
    """
    if z.dtype == torch.float32:
        return fitted_winner_gap(z, s)
    small = _below_border(z)
    t = torch.exp(_blend(-z, z, small))
    a = t * small
    a0 = a * (1 + s)
    u = _blend(t, (a + _SHIFT).reciprocal(), small)
    v = _blend(t / (1 + s), (a0 + _SHIFT).reciprocal(), small)
    # u - v, exactly: a s u v below the border, v s above
    step = _blend(v * s, a * s * u * v, small)
    tail = (u + v) * divided_difference((0.0, *_DIGAMMA), u * u, v * v)
    recurrence = sum(a * s / ((a + i) * (a0 + i)) for i in range(1, _SHIFT))
    below = torch.log1p(s * _SHIFT * v) - recurrence - step * (0.5 + tail)
    return _blend(step * (0.5 - tail), below, small)


def _below_border(z: Tensor) -> Tensor:
    """:return: 1 where the argument has to be shifted, else 0, as numbers"""
    return z.detach().clone().lt_(math.log(_SHIFT))


def _blend(large: Tensor, small: Tensor, is_small: Tensor) -> Tensor:
    # on a processor torch.lerp is twenty times faster than torch.where, and it is exact at both
    # ends; compiled it is the other way round
    if torch.compiler.is_compiling():
        return torch.where(is_small > 0, small, large)
    return torch.lerp(large, small, is_small)


def _recurrences(a: Tensor) -> tuple[Tensor, Tensor]:
    """:return: the sum of 1 / (a + i) and of ln(a + i) for i from 1 to the shift - 1"""
    product = a + 1
    derivative = torch.ones_like(a)
    for i in range(2, _SHIFT):
        factor = a + i
        derivative = torch.addcmul(product, derivative, factor)
        product = product * factor
    return derivative / product, torch.log(product)
