r"""
Likelihoods under a Dirichlet distribution with concentrations :math:`\alpha = e^z`.

With the remainder :math:`r` of :mod:`dpn_plugin.functional.special`, the mean :math:`a` of the
Dirichlet and the mean :math:`\mu_c = \frac1M \sum_m \ln \pi_{mc}` of log-probabilities, whose
exponentials have the sum :math:`Z \leq 1` and the shares :math:`g = e^\mu / Z`, the negative
log-likelihood of :math:`\pi_1, \dots, \pi_M` is

.. math::
    -\frac1M \sum_m \ln \mathrm{Dir}(\pi_m; \alpha)
      = \alpha_0 \bigl[\mathrm{KL}(a \,\|\, g) - \ln Z\bigr]
      - \tfrac12 \Bigl[\sum_c z_c - \ln\alpha_0 - (K - 1) \ln 2\pi\Bigr]
      + \sum_c r(\alpha_c) - r(\alpha_0) + \sum_c \mu_c,

where :math:`-\ln Z` measures how far the :math:`\pi_m` are apart. It is zero if they are equal, and
is computed from :math:`1 - Z = \sum_c e^{\mu_c} \frac1M \sum_m (e^\delta - 1 - \delta)` with
:math:`\delta = \ln \pi_{mc} - \mu_c`, a sum of positive terms.
"""

import math

import torch
from torch import Tensor

from dpn_plugin.functional.divergence import exp_remainder, mean_divergence, stirling
from dpn_plugin.functional.special import log_minus_digamma, log_others, winner_gap


def dirichlet_nll(log_alpha: Tensor, log_p: Tensor) -> Tensor:
    r"""
    Return the negative log-likelihood of probabilities under a Dirichlet, averaged over them.

    It is differentiable in both arguments. Its shape is :math:`B` or :math:`B \times H \times W`.

    :param log_alpha: log-concentrations, shape :math:`B \times K` or
        :math:`B \times K \times H \times W`
    :param log_p: logarithms of :math:`M` probabilities each, :math:`M \times B \times K \cdots`
    """
    mean = log_p.mean(dim=0)
    log_z = _log_agreement(log_p, mean)
    z0 = torch.logsumexp(log_alpha, dim=1)
    # not log_alpha - z0, whose rounding is multiplied by alpha0
    shares, own = torch.log_softmax(mean, dim=1), torch.log_softmax(log_alpha, dim=1)
    apart = mean_divergence(shares, own, log_alpha) - torch.exp(z0) * log_z
    constant = (log_alpha.shape[1] - 1) / 2 * math.log(2 * math.pi)
    half = constant - 0.5 * (log_alpha.sum(dim=1) - z0)
    return apart + half + stirling(log_alpha)[0].sum(dim=1) - stirling(z0)[0] + mean.sum(dim=1)


def expected_cross_entropy(log_alpha: Tensor, right: Tensor) -> Tensor:
    r"""
    Return :math:`-\mathbb{E} \ln \pi_y = \psi(\alpha_0) - \psi(\alpha_y)` under a Dirichlet.

    :param log_alpha: log-concentrations, shape :math:`B \times K` or
        :math:`B \times K \times H \times W`
    :param right: true at the label :math:`y` of each sample, false everywhere if it has none
    """
    log_s = torch.where(right, log_others(log_alpha) - log_alpha, 0.0).sum(dim=1)
    z = torch.where(right, log_alpha, 0.0).sum(dim=1)
    near = log_s < 0  # the right class has most of the concentration: psi would cancel
    s = torch.exp(torch.where(near, log_s, 0.0))
    pole = torch.exp(-torch.where(near, z, 0.0)) * s / (1 + s)
    of_near = torch.log1p(s) + pole - winner_gap(torch.where(near, z, 0.0), s)
    z0 = torch.logsumexp(log_alpha, dim=1)
    of_far = z0 - z + log_minus_digamma(z) - log_minus_digamma(z0)
    return torch.where(near, of_near, of_far)


def _log_agreement(log_p: Tensor, mean: Tensor) -> Tensor:
    """Return ln Z, the logarithm of the sum over the classes of the geometric means."""
    distance = log_p - mean
    near = distance.abs() < 0.5
    near_term = torch.exp(mean) * exp_remainder(torch.where(near, distance, 0.0))
    # not exp(distance), which may overflow where the mean is low
    far_term = torch.exp(log_p) - torch.exp(mean) * (1 + distance)
    lost = torch.where(near, near_term, far_term).mean(dim=0).sum(dim=1)
    close = lost < 0.5
    from_lost = torch.log1p(-torch.where(close, lost, 0.0))
    return torch.where(close, from_lost, torch.logsumexp(mean, dim=1))
