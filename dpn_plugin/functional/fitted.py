r"""
Polynomials for :math:`0 \leq a \leq 3` in float32, where seven digits are all there are.

In :math:`w = a / (a + 3)` the poles of the gamma function move so far away that degree 9 is enough:
the error is below :math:`10^{-7}`, and two logarithms and a division are saved. The coefficients
are those of Chebyshev interpolation on :math:`[0, 1/2]`; the tests hold both polynomials against
mpmath.
"""

import torch
from torch import Tensor

__all__ = ["digamma_of_next", "entropy_part", "polynomial"]

_DIGAMMA_OF_NEXT = (
    -0.5772156018154154,
    4.934776830465073,
    -5.881989938891886,
    12.474182917978876,
    -23.190621896966046,
    42.72481062379794,
    -65.45250111585428,
    76.11544864705388,
    -56.05259626001514,
    19.677122651036214,
)
_ENTROPY_PART = (
    0.0810615254389512,
    2.9999764191065483,
    -4.4006054868533395,
    9.789626635814074,
    -19.44134596476526,
    36.676926380355155,
    -57.19579483075539,
    66.65175426202755,
    -48.9411281600635,
    16.865374319747094,
)


def digamma_of_next(w: Tensor) -> Tensor:
    r""":return: :math:`\psi(a + 1)` for :math:`w = a / (a + 3)` between 0 and 1/2"""
    return polynomial(_DIGAMMA_OF_NEXT, w)


def entropy_part(w: Tensor) -> Tensor:
    r""":return: :math:`\ln\Gamma(a + 1) - a\,\psi(a + 1) + a + 1 - \tfrac12 \ln 2\pi`, likewise"""
    return polynomial(_ENTROPY_PART, w)


def polynomial(coefficients: tuple[float, ...], x: Tensor) -> Tensor:
    """:return: the polynomial with these coefficients, the constant first, by Horner's scheme"""
    in_place = not (torch.is_grad_enabled() and x.requires_grad)
    value = x * coefficients[-1]
    for c in reversed(coefficients[1:-1]):
        value = value.add_(c)
        value = value.mul_(x) if in_place else value * x
    return value.add_(coefficients[0])
