r"""
Special functions of :math:`a = e^z`, evaluated from :math:`z` so that no digit is lost.

Differences of gamma functions lose every digit once the leading Stirling terms cancel. The functions
here are what is left when these terms are taken away by hand:

.. math::
    q(a) = \ln a - \psi(a), \quad
    g(a) = \psi(a + 1) - \ln a = 1/a - q(a), \quad
    r(a) = \ln\Gamma(a) - \bigl[(a - \tfrac12) \ln a - a + \tfrac12 \ln 2\pi\bigr]

For :math:`a \geq N` they are short series in :math:`1/a`; below, the argument is shifted by
:math:`N` with the recurrences of :math:`\psi` and :math:`\ln\Gamma`. Both cases are plain tensor
operations, so the functions export, compile and differentiate.
"""

import math
from typing import NamedTuple

import torch
from torch import Tensor

__all__ = ["Remainders", "log_minus_digamma", "remainders", "winner_gap"]

# psi(x) = ln x - 1/(2x) - sum_k B_2k/(2k) x^-2k  and
# ln Gamma(x) = Stirling + sum_k B_2k/(2k(2k-1)) x^(1-2k)
_DIGAMMA = (1 / 12, -1 / 120, 1 / 252, -1 / 240, 1 / 132, -691 / 32760, 1 / 12, -3617 / 8160)
_LGAMMA = (1 / 12, -1 / 360, 1 / 1260, -1 / 1680, 1 / 1188, -691 / 360360, 1 / 156, -3617 / 122400)


class _Order(NamedTuple):
    shift: int
    terms: int


# chosen so that the first neglected term is below the rounding of the type
_ORDERS = {torch.float32: _Order(shift=4, terms=4), torch.float64: _Order(shift=9, terms=8)}


class Remainders(NamedTuple):
    r"""What is left of the gamma functions at :math:`a = e^z` without their Stirling terms."""

    g: Tensor  #: :math:`\psi(a + 1) - \ln a`, positive and falling
    r: Tensor  #: :math:`\ln\Gamma(a)` minus its Stirling approximation, positive and falling
    aq: Tensor  #: :math:`a (\ln a - \psi(a))`, between 1/2 and 1


def remainders(z: Tensor) -> Remainders:
    """
    :param z: logarithms of the arguments, any shape, float32 or float64
    :return: all three remainders, from one exponential and two logarithms per element
    """
    shift, terms = _ORDERS[z.dtype]
    small = z < math.log(shift)
    t = torch.exp(torch.where(small, z, -z))  # a where it is small, 1/a where it is large
    a = torch.where(small, t, 0.0)
    x = a + shift
    u = torch.where(small, x.reciprocal(), t)
    square = u * u
    digamma_tail = u * _polynomial(_DIGAMMA[:terms], square)
    lgamma_tail = u * _polynomial(_LGAMMA[:terms], square)

    product, derivative = _rising(a, shift)
    log_x = torch.log(x)
    g_small = log_x - u * (0.5 + digamma_tail) - derivative / product - z
    r_small = (x - 0.5) * log_x - shift - torch.log(product) - (a + 0.5) * z + lgamma_tail
    g = torch.where(small, g_small, u * (0.5 - digamma_tail))
    return Remainders(
        g=g,
        r=torch.where(small, r_small, lgamma_tail),
        aq=torch.where(small, 1 - a * g_small, 0.5 + digamma_tail),
    )


def log_minus_digamma(z: Tensor) -> Tensor:
    r"""
    :param z: logarithms of the arguments, any shape, float32 or float64
    :return: :math:`q(a) = \ln a - \psi(a)` at :math:`a = e^z`; overflows only where :math:`1/a` does
    """
    return remainders(z).aq * torch.exp(-z)


def winner_gap(z: Tensor, s: Tensor) -> Tensor:
    r"""
    :math:`g(a) - g(a (1 + s))` without the cancellation for small :math:`s`.

    Every difference is written with the common factor :math:`s` in front, so that a sample whose
    winning class has nearly all the concentration keeps its digits.

    :param z: :math:`\ln a`
    :param s: what the other classes add, relative to :math:`a`; not negative
    :return: the difference, not negative, of the shape of ``z``
    """
    shift, terms = _ORDERS[z.dtype]
    small = z < math.log(shift)
    t = torch.exp(torch.where(small, z, -z))
    a = torch.where(small, t, 0.0)
    a0 = a * (1 + s)
    u = torch.where(small, (a + shift).reciprocal(), t)
    v = torch.where(small, (a0 + shift).reciprocal(), t / (1 + s))
    # u - v, exactly: a s u v below the border, u s / (1 + s) above
    step = torch.where(small, a * s * u * v, v * s)
    tail = (u + v) * _divided_difference((0.0, *_DIGAMMA[:terms]), u * u, v * v)
    recurrence = sum(a * s / ((a + i) * (a0 + i)) for i in range(1, shift))
    below = torch.log1p(s * shift * v) - recurrence - step * (0.5 + tail)
    return torch.where(small, below, step * (0.5 - tail))


def _polynomial(coefficients: tuple[float, ...], x: Tensor) -> Tensor:
    value = torch.full_like(x, coefficients[-1])
    for c in reversed(coefficients[:-1]):
        value = value * x + c
    return value


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
    product = a + 1
    derivative = torch.ones_like(a)
    for i in range(2, shift):
        derivative = derivative * (a + i) + product
        product = product * (a + i)
    return product, derivative
