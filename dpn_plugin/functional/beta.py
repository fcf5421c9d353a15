r"""
The entropy of a Beta distribution near the uniform one.

Two classes are the only case in which the differential entropy can be zero, at
:math:`\alpha = (1, 1)`. Around that point its value is a small difference of large terms; the
Taylor series in :math:`u = \alpha_1 - 1`, :math:`v = \alpha_2 - 1` has no such cancellation:

.. math::
    \text{D.Ent} = \sum_{k \geq 2} (-1)^k \Bigl(1 - \frac1k\Bigr)
        \bigl[(\zeta(k) - 1)(u + v)^k - \zeta(k)(u^k + v^k)\bigr]
"""

import math

import torch
from scipy.special import zeta, zetac
from torch import Tensor

__all__ = ["entropy_near_uniform"]

_RADIUS = 0.4  # of u and v; the series converges for |u|, |v| < 1 and |u + v| < 2
_TERMS = 36  # 0.4^38 is the rounding of float64


_ORDER = range(2, _TERMS + 2)
_SINGLE = tuple((-1) ** k * (1 - 1 / k) * float(zeta(k)) for k in _ORDER)
_JOINT = tuple((-1) ** k * (1 - 1 / k) * float(zetac(k)) for k in _ORDER)


def entropy_near_uniform(z: Tensor) -> Tensor:
    r"""
    :param z: logits of two classes, shape :math:`2 \times n`
    :return: the differential entropy where the series holds, NaN elsewhere, shape :math:`n`
    """
    u = torch.expm1(z.clamp(-1, 1))
    near = u.detach().abs().amax(dim=0) < _RADIUS
    u = torch.where(near, u, 0.0)
    value = _series(_JOINT, u.sum(dim=0)) - _series(_SINGLE, u).sum(dim=0)
    return torch.where(near, value, math.nan)


def _series(coefficients: tuple[float, ...], x: Tensor) -> Tensor:
    value = torch.zeros_like(x)
    for c in reversed(coefficients):
        value = (value + c) * x
    return value * x
