r"""
Special functions of :math:`a = e^z`, evaluated from :math:`z` without loss of precision.

Differences of gamma functions lose all digits when the leading Stirling terms cancel. The functions
here are what remains after these terms are removed analytically:

.. math::
    q(a) = \ln a - \psi(a), \quad
    g(a) = \psi(a + 1) - \ln a = 1/a - q(a), \quad
    r(a) = \ln\Gamma(a) - \bigl[(a - \tfrac12) \ln a - a + \tfrac12 \ln 2\pi\bigr]

In float32 two polynomials give them (:mod:`dpn_plugin.functional.fitted`). In float64 they are, for
:math:`a \geq 9`, series in :math:`1/a`; below, the argument is shifted by 9 with the recurrences of
:math:`\psi` and :math:`\ln\Gamma`. All are plain tensor operations, so the functions export,
compile and differentiate.

The entropy of a Beta distribution near the uniform one has a series of its own. Two classes are the
only case in which the differential entropy can be zero, at :math:`\alpha = (1, 1)`. Around that
point its value is a small difference of large terms; the Taylor series in
:math:`u = \alpha_1 - 1`, :math:`v = \alpha_2 - 1` has no such cancellation:

.. math::
    \text{D.Ent} = \sum_{k \geq 2} (-1)^k \Bigl(1 - \frac1k\Bigr)
        \bigl[(\zeta(k) - 1)(u + v)^k - \zeta(k)(u^k + v^k)\bigr]
"""

import math
from typing import NamedTuple

import torch
from scipy.special import zeta, zetac
from torch import Tensor

from dpn_plugin.functional.fitted import (
    divided_difference,
    fitted_remainders,
    fitted_winner_gap,
    polynomial,
)

# psi(x) = ln x - 1/(2x) - sum_k B_2k/(2k) x^-2k  and
# ln Gamma(x) = Stirling + sum_k B_2k/(2k(2k-1)) x^(1-2k)
_DIGAMMA = (1 / 12, -1 / 120, 1 / 252, -1 / 240, 1 / 132, -691 / 32760, 1 / 12, -3617 / 8160)
_LGAMMA = (1 / 12, -1 / 360, 1 / 1260, -1 / 1680, 1 / 1188, -691 / 360360, 1 / 156, -3617 / 122400)
# psi'(x) = 1/x + 1/(2x^2) + sum_k B_2k x^(-1-2k)
_TRIGAMMA = (1 / 6, -1 / 30, 1 / 42, -1 / 30, 5 / 66, -691 / 2730, 7 / 6, -3617 / 510, 43867 / 798)
# Smaller arguments are shifted by it. For larger ones the neglected terms are below the rounding of
# the sums that use the series.
_SHIFT = 9

_BETA_RADIUS = 0.4  # of u and v; the series converges for |u|, |v| < 1 and |u + v| < 2
_BETA_ORDERS = range(2, 38)  # 0.4^38 is the rounding of float64
_BETA_SINGLE = tuple((-1) ** k * (1 - 1 / k) * float(zeta(k)) for k in _BETA_ORDERS)
_BETA_JOINT = tuple((-1) ** k * (1 - 1 / k) * float(zetac(k)) for k in _BETA_ORDERS)


class Remainders(NamedTuple):
    r"""The gamma functions at :math:`a = e^z` without their Stirling terms."""

    g: Tensor  #: :math:`\psi(a + 1) - \ln a`, positive and falling
    h: Tensor  #: :math:`r(a) + a\, q(a) + z/2`


def remainders(z: Tensor) -> Remainders:
    """
    Return both remainders at the exponential of ``z``.

    :param z: logarithms of the arguments, any shape, float32 or float64
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
    Return :math:`q(a) = \ln a - \psi(a)` at :math:`a = e^z`; it overflows where :math:`1/a` does.

    :param z: logarithms of the arguments, any shape, float32 or float64
    """
    return torch.exp(-z) - remainders(z).g


def trigamma_remainder(z: Tensor) -> Tensor:
    r"""
    Return :math:`b(a) = a^2 \psi'(a) - a` at :math:`a = e^z`, between 1/2 and 1.

    It gives :math:`\psi'(a) = (a + b) / a^2` and, without cancellation,
    :math:`a - 1 / \psi'(a) = a b / (a + b)`. Below the border the argument is shifted with

    .. math:: \psi'(a) - \frac1a = \sum_{i=0}^{n-1} \frac{1}{(a+i)^2 (a+i+1)}
        + \Bigl[\psi'(a+n) - \frac1{a+n}\Bigr],

    whose terms are all positive.

    :param z: logarithms of the arguments, any shape, float32 or float64
    """
    small = z < math.log(_SHIFT)
    a = torch.exp(torch.where(small, z, 0.0))
    u = torch.where(small, 1 / (a + _SHIFT), torch.exp(-torch.where(small, 0.0, z)))
    series = 0.5 + u * polynomial(_TRIGAMMA, u * u)
    shifted = sum(1 / ((a + i).square() * (a + i + 1)) for i in range(1, _SHIFT))
    return torch.where(small, 1 / (1 + a) + a.square() * (shifted + series * u * u), series)


def winner_gap(z: Tensor, s: Tensor) -> Tensor:
    r"""
    Return :math:`g(a) - g(a (1 + s)) \geq 0` without the cancellation for small :math:`s`.

    Every difference has the common factor :math:`s`, so that a sample whose winning class has
    nearly all the concentration keeps its precision.

    :param z: :math:`\ln a`
    :param s: the sum of the other concentrations relative to :math:`a`; not negative
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


def log_others(z: Tensor) -> Tensor:
    r"""
    Return :math:`\ln \sum_{j \neq c} e^{z_j}` for every class :math:`c`, in the shape of ``z``.

    The sum of all minus the winner would cancel, so that of the winner is computed by itself; every
    other class has at most half of the sum.

    :param z: at least two classes in dimension 1
    """
    classes = torch.arange(z.shape[1], device=z.device).view(-1, *[1] * (z.dim() - 2))
    winner = classes == z.argmax(dim=1, keepdim=True)
    rest = torch.logsumexp(torch.where(winner, -math.inf, z), dim=1, keepdim=True)
    share = torch.where(winner, -1.0, z - torch.logsumexp(z, dim=1, keepdim=True))
    of_losers = torch.logsumexp(z, dim=1, keepdim=True) + torch.log1p(-torch.exp(share))
    return torch.where(winner, rest, of_losers)


def entropy_near_uniform(z: Tensor) -> Tensor:
    r"""
    Return the differential entropy of two classes near :math:`\alpha = (1, 1)`, NaN elsewhere.

    :param z: logits of two classes, shape :math:`2 \times n`
    """
    u = torch.expm1(z.clamp(-1, 1))
    near = u.detach().abs().amax(dim=0) < _BETA_RADIUS
    u = torch.where(near, u, 0.0)
    value = _series(_BETA_JOINT, u.sum(dim=0)) - _series(_BETA_SINGLE, u).sum(dim=0)
    return torch.where(near, value, math.nan)


def _series(coefficients: tuple[float, ...], x: Tensor) -> Tensor:
    value = torch.zeros_like(x)
    for c in reversed(coefficients):
        value = (value + c) * x
    return value * x


def _below_border(z: Tensor) -> Tensor:
    """Return 1 where the argument has to be shifted, else 0, as numbers."""
    return z.detach().clone().lt_(math.log(_SHIFT))


def _blend(large: Tensor, small: Tensor, is_small: Tensor) -> Tensor:
    # on a CPU torch.lerp is twenty times faster than torch.where and exact at both ends; in
    # compiled code torch.where is the faster one
    if torch.compiler.is_compiling():
        return torch.where(is_small > 0, small, large)
    return torch.lerp(large, small, is_small)


def _recurrences(a: Tensor) -> tuple[Tensor, Tensor]:
    """Return the sums of 1 / (a + i) and of ln(a + i) for i from 1 to the shift - 1."""
    product = a + 1
    derivative = torch.ones_like(a)
    for i in range(2, _SHIFT):
        factor = a + i
        derivative = torch.addcmul(product, derivative, factor)
        product = product * factor
    return derivative / product, torch.log(product)
