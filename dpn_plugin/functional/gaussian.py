"""The Kullback-Leibler divergence between two Gaussians, and checks of their covariances."""

import torch
from torch import Tensor

#: ridges tried in turn, relative to the mean variance
RIDGES = (0.0, 1e-12, 1e-10, 1e-8)


def gaussian_kl(mean1: Tensor, cov1: Tensor, mean2: Tensor, cov2: Tensor) -> Tensor:
    r"""
    Return the Kullback-Leibler divergence of two Gaussians, a float64 scalar, never negative.

    .. math::
        \mathrm{KL}(N_1 \| N_2) = \tfrac12 \Bigl[\operatorname{tr}(S_2^{-1} S_1)
        + (m_2 - m_1)^\top S_2^{-1} (m_2 - m_1) - d + \ln\frac{\det S_2}{\det S_1}\Bigr]

    .. note:: The formula printed in the paper lacks the logarithm and mixes the indices.

    :param mean1: shape :math:`d`
    :param cov1: shape :math:`d \times d`, symmetric; a covariance that is singular up to rounding
        gets a ridge of at most 1e-8 of its mean variance
    :param mean2: shape :math:`d`
    :param cov2: shape :math:`d \times d`
    :raises ValueError: if shapes do not fit, a value is not finite, or a covariance is singular
        beyond rounding
    """
    mean1, mean2 = _vector(mean1, "mean1"), _vector(mean2, "mean2")
    if mean1.shape != mean2.shape:
        raise ValueError(f"mean1 has {len(mean1)} dimensions, mean2 has {len(mean2)}.")
    l1 = cholesky(cov1, "cov1", len(mean1))
    l2 = cholesky(cov2, "cov2", len(mean1))
    scaled = torch.linalg.solve_triangular(l2, l1, upper=False)
    shift = torch.linalg.solve_triangular(l2, (mean2 - mean1).unsqueeze(1), upper=False)
    # tr - d - ln det of the scaled covariance, eigenvalue by eigenvalue: no term is negative
    eigenvalues = torch.linalg.svdvals(scaled).square()
    excess = eigenvalues - 1
    return 0.5 * ((excess - torch.log1p(excess)).sum() + shift.square().sum())


def cholesky(cov: Tensor, name: str, size: int | None = None) -> Tensor:
    """
    Return the lower Cholesky factor of a covariance in float64, with the smallest ridge needed.

    :param cov: a covariance, shape :math:`d \\times d`
    :param name: the name of the argument in error messages
    :param size: the expected :math:`d`
    :raises ValueError: if it is not a covariance, or no ridge makes it positive definite
    """
    cov = _square(cov, name, size)
    scale = float(cov.diagonal().mean())
    if scale <= 0:
        raise ValueError(
            f"{name} is not a covariance: its mean variance is {scale:g}, not positive."
        )
    identity = torch.eye(len(cov), dtype=cov.dtype, device=cov.device)
    for ridge in RIDGES:
        factor, failed = torch.linalg.cholesky_ex(cov + ridge * scale * identity)
        if not failed:
            return factor
    lowest = float(torch.linalg.eigvalsh(cov)[0])
    raise ValueError(
        f"{name} is not a covariance: its lowest eigenvalue is {lowest:g} and its mean variance "
        f"{scale:g}; a covariance has no negative eigenvalues."
    )


def _vector(mean: Tensor, name: str) -> Tensor:
    mean = torch.as_tensor(mean).to(torch.float64)
    if mean.dim() != 1 or len(mean) == 0:
        raise ValueError(f"{name} must have shape (d,), not {tuple(mean.shape)}.")
    if not torch.isfinite(mean).all():
        raise ValueError(f"{name} must be finite, not {mean.tolist()}.")
    return mean


def _square(cov: Tensor, name: str, size: int | None) -> Tensor:
    cov = torch.as_tensor(cov).to(torch.float64)
    expected = "(d, d)" if size is None else f"({size}, {size})"
    if cov.dim() != 2 or cov.shape[0] != cov.shape[1] or size not in (None, len(cov)):
        raise ValueError(f"{name} must have shape {expected}, not {tuple(cov.shape)}.")
    if not torch.isfinite(cov).all():
        raise ValueError(f"{name} must be finite.")
    if not torch.allclose(cov, cov.T, rtol=1e-6, atol=1e-12 * float(cov.abs().max())):
        raise ValueError(f"{name} must be symmetric.")
    return (cov + cov.T) / 2
