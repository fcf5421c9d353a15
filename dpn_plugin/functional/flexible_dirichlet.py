r"""
The mean and the variance of a flexible Dirichlet distribution, from logarithms.

It has concentrations :math:`\alpha`, an allocation :math:`p` and a dispersion :math:`\tau`: a
mixture, with weights :math:`p_k`, of Dirichlets in which class :math:`k` has
:math:`\alpha_k + \tau` instead of :math:`\alpha_k`. With :math:`A = \alpha_0 + \tau`, its moments
are

.. math::
    \mu_c = \frac{\alpha_c + \tau p_c}{A}, \qquad
    \sigma_c^2 = \frac{\mu_c (1 - \mu_c)}{A + 1} + \frac{\tau^2 p_c (1 - p_c)}{A (A + 1)}.

All are sums of positive terms if they are written with :math:`1 - \mu_c`, :math:`1 - p_c` and
:math:`\alpha_0 - \alpha_c` as sums over the other classes:

.. math::
    \sum_c \sigma_c^2 = \frac{N + (1 + A)\, \tau^2 G}{A^2 (1 + A)}, \quad
    N = \sum_c \alpha_c (\alpha_0 - \alpha_c) + 2 \tau \sum_c \alpha_c (1 - p_c), \quad
    G = \sum_c p_c (1 - p_c).
"""

import math
from typing import NamedTuple

import torch
from torch import Tensor
from torch.nn import functional as F

from dpn_plugin.functional.special import log_others


class FlexibleDirichlet(NamedTuple):
    r"""
    A flexible Dirichlet distribution for every sample.

    :param log_alpha: :math:`\ln \alpha`, shape :math:`B \times K` or
        :math:`B \times K \times H \times W`
    :param log_p: :math:`\ln p`, of the same shape
    :param log_tau: :math:`\ln \tau`, with one column instead of :math:`K`
    """

    log_alpha: Tensor
    log_p: Tensor
    log_tau: Tensor

    def log_mean(self) -> Tensor:
        r"""Return :math:`\ln \mu`, in the shape of the concentrations."""
        return torch.logaddexp(self.log_alpha, self.log_tau + self.log_p) - self._log_total()

    def log_variance(self) -> Tensor:
        r"""Return :math:`\ln \sum_c \sigma_c^2`, with one column."""
        inner, outer = self._parts()
        total = self._log_total()
        return torch.logaddexp(inner, outer) - 2 * total - _log1p_exp(total)

    def log_concentrations(self) -> Tensor:
        r"""
        Return the log-concentrations of the Dirichlet with the same mean and the same sum of
        variances, :math:`\ln \mu_c + \ln S`.

        The sum of the variances of a Dirichlet is :math:`(1 - \sum_c \mu_c^2) / (S + 1)`. Both are
        equal for

        .. math:: S = \frac{A N}{N + (1 + A)\, \tau^2 G},

        which is :math:`\alpha_0` for :math:`\tau = 0`.
        """
        inner, outer = self._parts()
        scale = self._log_total() + inner - torch.logaddexp(inner, outer)
        return self.log_mean() + scale

    def _log_total(self) -> Tensor:
        return torch.logaddexp(torch.logsumexp(self.log_alpha, 1, keepdim=True), self.log_tau)

    def _parts(self) -> tuple[Tensor, Tensor]:
        r"""Return :math:`\ln N` and :math:`\ln (1 + A) \tau^2 G`."""
        not_p = log_others(self.log_p)
        own = torch.logsumexp(self.log_alpha + log_others(self.log_alpha), 1, keepdim=True)
        shared = torch.logsumexp(self.log_alpha + not_p, 1, keepdim=True)
        inner = torch.logaddexp(own, math.log(2) + self.log_tau + shared)
        spread = torch.logsumexp(self.log_p + not_p, 1, keepdim=True)
        return inner, _log1p_exp(self._log_total()) + 2 * self.log_tau + spread


def _log1p_exp(z: Tensor) -> Tensor:
    return F.softplus(z, threshold=60)  # the default threshold is off by 2e-9
