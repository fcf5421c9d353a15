r"""
The sum of the variances of the class probabilities under a Dirichlet.

With the winning class :math:`m`, :math:`o_c = e^{z_c - z_m}` and :math:`s = \sum_{c \neq m} o_c`,

.. math::
    \sum_c \operatorname{Var} \pi_c = \frac{1 - \sum_c p_c^2}{1 + \alpha_0}, \qquad
    1 - \sum_c p_c^2 = \frac{s}{(1 + s)^2} \Bigl[2 + s - \sum_{c \neq m} o_c \frac{o_c}{s}\Bigr],

where the bracket is at least 1: the last sum is a mean of numbers between 0 and 1.
"""

import math

import torch
from torch import Tensor
from torch.nn import functional as F

from dpn_plugin.functional.logits import by_class


def log_total_variance(logits: Tensor) -> Tensor:
    r"""
    Return :math:`\ln \sum_c \operatorname{Var} \pi_c`, which is finite for all finite logits.

    :param logits: shape :math:`B \times K` or :math:`B \times K \times H \times W`
    """
    return by_class(_sums, _finish, logits)[0]


def _sums(z: Tensor) -> tuple[Tensor, ...]:
    """Return the largest logit, ln s, and the weighted mean of the other classes' ratios."""
    top, index = z.max(dim=0)
    winner = torch.arange(len(z), device=z.device).unsqueeze(1) == index
    gaps = torch.where(winner, -math.inf, z - top)
    log_s = torch.logsumexp(gaps, dim=0)
    return top, log_s, torch.exp(2 * gaps - log_s).sum(dim=0)


def _finish(classes: int, top: Tensor, log_s: Tensor, mean: Tensor) -> tuple[Tensor]:
    s = torch.exp(log_s)
    spread = log_s - 2 * torch.log1p(s) + torch.log(2 + s - mean)
    return (spread - F.softplus(top + torch.log1p(s), threshold=60),)
