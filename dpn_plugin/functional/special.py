r"""
Special functions of :math:`a = e^z`, evaluated from :math:`z` so that no digit is lost.

Differences of gamma functions lose every digit once the leading Stirling terms cancel. The
functions here are what is left when these terms are taken away by hand:

.. math::
    q(a) = \ln a - \psi(a), \quad
    g(a) = \psi(a + 1) - \ln a = 1/a - q(a), \quad
    r(a) = \ln\Gamma(a) - \bigl[(a - \tfrac12) \ln a - a + \tfrac12 \ln 2\pi\bigr]

For :math:`a \geq N` they are short series in :math:`1/a`; below, the argument is shifted by
:math:`N` with the recurrences of :math:`\psi` and :math:`\ln\Gamma`. All are plain tensor
operations, so the functions export, compile and differentiate.
"""

import math
from typing import NamedTuple

import torch
from torch import Tensor

from dpn_plugin.functional.fitted import digamma_of_next, entropy_part, polynomial

__all__ = ["Remainders", "log_minus_digamma", "remainders", "winner_gap"]

# psi(x) = ln x - 1/(2x) - sum_k B_2k/(2k) x^-2k  and
# ln Gamma(x) = Stirling + sum_k B_2k/(2k(2k-1)) x^(1-2k)
_DIGAMMA = (1 / 12, -1 / 120, 1 / 252, -1 / 240, 1 / 132, -691 / 32760, 1 / 12, -3617 / 8160)
_LGAMMA = (1 / 12, -1 / 360, 1 / 1260, -1 / 1680, 1 / 1188, -691 / 360360, 1 / 156, -3617 / 122400)


class _Order(NamedTuple):
    shift: int  # the border: smaller arguments are shifted by it
    digamma_terms: int
    lgamma_terms: int


# chosen so that what is neglected stays below the rounding of a sum that the term enters
_ORDERS = {torch.float32: _Order(3, 4, 3), torch.float64: _Order(9, 8, 8)}


class Remainders(NamedTuple):
    r"""What is left of the gamma functions at :math:`a = e^z` without their Stirling terms."""

    g: Tensor  #: :math:`\psi(a + 1) - \ln a`, positive and falling
    h: Tensor  #: :math:`r(a) + a\, q(a) + z/2`


def remainders(z: Tensor) -> Remainders:
    """
    :param z: logarithms of the arguments, any shape, float32 or float64
    :return: both remainders
    """
    order = _ORDERS[z.dtype]
    small = _below(z, math.log(order.shift))
    t = _blend(-z, z, small).exp_()  # a where it is small, 1/a where it is large
    a = t * small
    x = a + order.shift
    u = _blend(t, x.reciprocal(), small)
    square = u * u
    aq = (polynomial(_DIGAMMA[: order.digamma_terms], square) * u).add_(0.5)
    lgamma_tail = polynomial(_LGAMMA[: order.lgamma_terms], square) * u
    q = aq * u
    next_digamma, h_small = _below_border(a, x, u, q, lgamma_tail)
    h_large = torch.add(aq, z, alpha=0.5).add_(lgamma_tail)
    g = _blend(u - q, next_digamma - z, small)
    return Remainders(g, _blend(h_large, h_small, small))


def _below_border(
    a: Tensor, x: Tensor, u: Tensor, q: Tensor, lgamma_tail: Tensor
) -> tuple[Tensor, Tensor]:
    """
    :param x: the shifted argument; ``u``, ``q`` and ``lgamma_tail`` belong to it
    :return: psi(a + 1) and h(a) for arguments below the border
    """
    # compiled, two polynomials cost less than two logarithms and a division; eager they cost more
    if a.dtype == torch.float32 and torch.compiler.is_compiling():
        w = a * u
        return digamma_of_next(w), entropy_part(w)
    shift = _ORDERS[a.dtype].shift
    product, derivative = _rising(a, shift)
    log_x = torch.log(x)
    lost = q + derivative / product
    h = (a * lost).sub_(torch.log(product)).add_(log_x, alpha=shift - 0.5)
    return log_x - lost, h.add_(lgamma_tail).add_(1 - shift)


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
    shift, terms, _ = _ORDERS[z.dtype]
    small = _below(z, math.log(shift))
    t = torch.exp(_blend(-z, z, small))
    a = t * small
    a0 = a * (1 + s)
    u = _blend(t, (a + shift).reciprocal(), small)
    v = _blend(t / (1 + s), (a0 + shift).reciprocal(), small)
    # u - v, exactly: a s u v below the border, v s above
    step = _blend(v * s, a * s * u * v, small)
    tail = (u + v) * _divided_difference((0.0, *_DIGAMMA[:terms]), u * u, v * v)
    recurrence = sum(a * s / ((a + i) * (a0 + i)) for i in range(1, shift))
    below = torch.log1p(s * shift * v) - recurrence - step * (0.5 + tail)
    return _blend(step * (0.5 - tail), below, small)


def _below(z: Tensor, border: float) -> Tensor:
    """:return: 1 where z is below the border, else 0, as numbers"""
    return z.detach().clone().lt_(border)


def _blend(large: Tensor, small: Tensor, is_small: Tensor) -> Tensor:
    # on a processor torch.lerp is twenty times faster than torch.where, and it is exact at both
    # ends; compiled it is the other way round
    if torch.compiler.is_compiling():
        return torch.where(is_small > 0, small, large)
    return torch.lerp(large, small, is_small)


def _divided_difference(coefficients: tuple[float, ...], x: Tensor, y: Tensor) -> Tensor:
    """:return: (p(x) - p(y)) / (x - y) by Horner's scheme, also where x equals y"""
    value = torch.full_like(x, coefficients[-1])
    difference = torch.zeros_like(x)
    for c in reversed(coefficients[:-1]):
        difference = difference * y + value
        value = value * x + c
    return difference


def _rising(a: Tensor, shift: int) -> tuple[Tensor, Tensor]:
    """:return: the product (a + 1) ... (a + shift - 1) and its derivative"""
    product = (a + 1) * (a + 2)
    derivative = torch.add(a + 3, a)
    for i in range(3, shift):
        factor = a + i
        derivative = torch.addcmul(product, derivative, factor)
        product = product * factor
    return product, derivative
