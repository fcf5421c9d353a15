r"""
The remainders of :mod:`dpn_plugin.functional.special` in float32, for all arguments at once.

Without the leading logarithms they are smooth functions of :math:`v = 1 / (1 + a)` on the whole of
:math:`[0, 1]`, so that no border between small and large arguments is needed:

.. math::
    g(a) = \ln(1 + 1/a) - v\,G(v), \qquad h(a) = \tfrac12 \ln(1 + a) + H(v)

For large :math:`a` the first difference is :math:`1/a - 1/2a`, which loses only one bit. The
coefficients are least-squares fits at Chebyshev points of :math:`[0, 1]`. The polynomials have an
absolute error below :math:`5 \cdot 10^{-8}`; the tests compare them with mpmath.
"""

import math

import torch
from torch import Tensor
from torch.nn import functional

_G = (
    0.500000011,
    0.0833320089,
    2.51317213e-05,
    -0.00849734599,
    0.000378543423,
    0.00426193319,
    -0.0029980679,
    0.00071346248,
)
_H = (
    0.500000031,
    -0.333337258,
    -0.0832515533,
    -0.0117457008,
    0.0106132112,
    0.00107864995,
    -0.00330582662,
    0.00100993984,
)
_LOG1P = (
    0.999999971,
    -0.499995015,
    0.333192713,
    -0.248443699,
    0.191114311,
    -0.136747697,
    0.078361668,
    -0.0295885074,
    0.0052534578,
)  # of ln(1 + x) / x


def fitted_remainders(z: Tensor) -> tuple[Tensor, Tensor]:
    r"""Return :math:`g(a)` and :math:`h(a)` at :math:`a = e^z`, accurate to float32."""
    v, log_ratio = _sigmoid_and_softplus(-z)
    g = torch.addcmul(log_ratio, polynomial(_G, v), v, value=-1)
    return g, torch.add(polynomial(_H, v), log_ratio + z, alpha=0.5)


def fitted_winner_gap(z: Tensor, s: Tensor) -> Tensor:
    r"""Return :math:`g(a) - g(a (1 + s))` at :math:`a = e^z`, accurate to float32."""
    v, v0 = torch.sigmoid(-z), torch.sigmoid(-z - torch.log1p(s))
    # with a0 = a (1 + s): (1 + 1/a) / (1 + 1/a0) = 1 + s v0 and v - v0 = s v0 a v
    step = s * v0
    return torch.log1p(step) - step * torch.sigmoid(z) * divided_difference((0.0, *_G), v, v0)


def _sigmoid_and_softplus(x: Tensor) -> tuple[Tensor, Tensor]:
    if not torch.compiler.is_compiling():
        return torch.sigmoid(x), functional.softplus(x)
    t = exp(-x.abs())  # shared by both; compiled, a polynomial costs a fifth of log1p
    softplus = x.clamp(min=0) + t * polynomial(_LOG1P, t)
    return torch.where(x > 0, 1.0, t) / (1 + t), softplus


def exp(x: Tensor) -> Tensor:
    """Return the exponential, in compiled code as a power of two."""
    # compiled, exp2 takes a third of the time of exp
    if torch.compiler.is_compiling():
        return torch.exp2(x * math.log2(math.e))
    return torch.exp(x)


def polynomial(coefficients: tuple[float, ...], x: Tensor) -> Tensor:
    """Return the polynomial with these coefficients, the constant first, by Horner's scheme."""
    # in place is faster, because the memory is still in the cache, but autograd needs each factor
    in_place = not (torch.is_grad_enabled() and x.requires_grad)
    value = (x * coefficients[-1]).add_(coefficients[-2])
    for c in reversed(coefficients[:-2]):
        value = (value.mul_(x) if in_place else value * x).add_(c)
    return value


def divided_difference(coefficients: tuple[float, ...], x: Tensor, y: Tensor) -> Tensor:
    """Return (p(x) - p(y)) / (x - y) by Horner's scheme, also where x equals y."""
    value = torch.full_like(x, coefficients[-1])
    difference = torch.zeros_like(x)
    for c in reversed(coefficients[:-1]):
        difference = torch.addcmul(value, difference, y)
        value = (value * x).add_(c)
    return difference
