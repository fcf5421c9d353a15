r"""
The Kullback-Leibler divergence between two Dirichlet distributions, from log-concentrations.

With :math:`\alpha = e^z`, :math:`\beta = e^w`, their means :math:`a, b` and the remainders
:math:`r, q` of :mod:`dpn_plugin.functional.special`, the Stirling terms cancel analytically:

.. math::
    \mathrm{KL}(\alpha \,\|\, \beta) = \beta_0\, \mathrm{KL}(b \,\|\, a)
      + \tfrac12 \Bigl[\sum_c (z_c - w_c) - \ln\frac{\alpha_0}{\beta_0}\Bigr]
      + \sum_c \bigl[r(\beta_c) - r(\alpha_c) - (\alpha_c - \beta_c) q(\alpha_c)\bigr]
      - r(\beta_0) + r(\alpha_0) + (\alpha_0 - \beta_0) q(\alpha_0)
"""

import torch
from torch import Tensor

from dpn_plugin.functional.logits import check_logits, computed_dtype
from dpn_plugin.functional.special import remainders


def dirichlet_kl(log_p: Tensor, log_q: Tensor) -> Tensor:
    r"""
    Return the divergence
    :math:`\mathrm{KL}(\mathrm{Dir}(e^{\texttt{log\_p}}) \,\|\, \mathrm{Dir}(e^{\texttt{log\_q}}))`,
    of shape :math:`B` or :math:`B \times H \times W`.

    It is differentiable in both arguments. Exchange them for the other direction.

    :param log_p: log-concentrations, shape :math:`B \times K` or
        :math:`B \times K \times H \times W`
    :param log_q: log-concentrations of a shape that broadcasts with ``log_p``
    :raises ValueError: if a shape does not fit or a value is NaN or infinite
    :raises UserTypeError: if an argument is not floating point
    """
    check_logits(log_p, "log_p")
    check_logits(log_q, "log_q")
    z, w = _broadcast(log_p, log_q)
    z0, w0 = torch.logsumexp(z, dim=1), torch.logsumexp(w, dim=1)
    (p_r, p_aq), (q_r, _), (p0_r, p0_aq), (q0_r, _) = map(stirling, (z, w, z0, w0))
    half = 0.5 * ((z - w).sum(dim=1) - (z0 - w0)) + (q_r - p_r).sum(dim=1) - (q0_r - p0_r)
    mean = mean_divergence(z - z0.unsqueeze(1), w - w0.unsqueeze(1), w)
    return mean + half + _poles(w - z, w0 - z0, p_aq, p0_aq)


def _broadcast(log_p: Tensor, log_q: Tensor) -> list[Tensor]:
    dtype = computed_dtype(torch.promote_types(log_p.dtype, log_q.dtype))
    pairs = zip(log_p.shape, log_q.shape, strict=False)
    if log_p.dim() != log_q.dim() or any(a != b and 1 not in (a, b) for a, b in pairs):
        raise ValueError(
            f"log_p of shape {tuple(log_p.shape)} and log_q of shape {tuple(log_q.shape)} do not "
            "broadcast."
        )
    return list(torch.broadcast_tensors(log_p.to(dtype), log_q.to(dtype)))


def stirling(z: Tensor) -> tuple[Tensor, Tensor]:
    """
    Return r(a) and a q(a) of :mod:`dpn_plugin.functional.special`.

    :param z: logarithms of the arguments, any shape
    """
    g, h = remainders(z)
    aq = 1 - torch.exp(z) * g
    return h - aq - 0.5 * z, aq


def mean_divergence(log_a: Tensor, log_b: Tensor, w: Tensor) -> Tensor:
    r"""
    Return :math:`\beta_0 \sum_c [b_c d_c - b_c + a_c]` with :math:`d = \ln b - \ln a`, which is
    :math:`\beta_0` times the divergence of two means.

    No term is negative, so equal means give zero, even for a large :math:`\beta_0`.

    :param log_a: the logarithm of the mean :math:`a`, :math:`B \times K`
    :param log_b: the same for :math:`b`
    :param w: :math:`\ln \beta`
    """
    d = log_b - log_a
    near = d.abs() < 0.5
    beta0 = torch.exp(w - log_b)
    far_term = torch.exp(w) * (d - 1) + beta0 * torch.exp(log_a)
    near_term = torch.exp(w) * exp_remainder(torch.where(near, -d, 0.0))
    return torch.where(near, near_term, far_term).sum(dim=1)


def exp_remainder(x: Tensor) -> Tensor:
    """Return exp(x) - 1 - x for |x| < 1/2, by its series; ``x`` may have any shape."""
    value = torch.zeros_like(x)
    for k in range(16, 2, -1):
        value = (value + 1) * x / k
    return (value + 1) * x * x / 2


def _poles(step: Tensor, step0: Tensor, aq: Tensor, aq0: Tensor) -> Tensor:
    r"""
    Return :math:`\sum_c (\beta_c - \alpha_c) q(\alpha_c) - (\beta_0 - \alpha_0) q(\alpha_0)`
    from the logarithms of the ratios :math:`\beta / \alpha`.
    """
    top = step.detach().amax(dim=1)
    # where a single exponential may overflow; the -1 is below the rounding there
    large = top > 40
    safe = torch.where(large, 0.0, 1.0)
    near = (aq * torch.expm1(step * safe.unsqueeze(1))).sum(dim=1) - aq0 * torch.expm1(step0 * safe)
    inner = (aq * torch.exp(step - top.unsqueeze(1))).sum(dim=1) - aq0 * torch.exp(step0 - top)
    far = torch.exp(torch.where(large, top, 0.0)) * inner
    return torch.where(large, far, near)
