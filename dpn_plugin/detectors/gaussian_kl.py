"""The detector that combines Max.P and log(-D.Ent) by three Gaussians."""

import math
import warnings
from typing import Self

import torch
from pytorch_ood.api import (
    LogitsDetector,
    ModelNotSetException,
    RequiresFittingException,
)
from torch import Tensor
from torch.distributions import MultivariateNormal
from torch.nn import Module
from torch.utils.data import DataLoader

from dpn_plugin import functional
from dpn_plugin.papers import REPRESENTATION_GAP, detector_info

#: the groups of samples, in the order of the columns of ``predict_source``
SOURCES = ("correct", "misclassified", "ood")

#: the smallest number of points for a covariance of two coordinates
FEWEST = 3
#: a variance below this share of the variance of all samples counts as zero ...
NO_SPREAD = 1e-12
#: ... and this share is added to it
ADDED_SPREAD = 1e-6
#: the variance of equal points, due to rounding
ROUNDING = 1e-24


def representation(logits: Tensor) -> Tensor:
    r"""
    Return the points (Max.P, :math:`\ln(-\text{D.Ent})`) in float64.

    Their shape is :math:`B \times 2` or :math:`B \times H \times W \times 2`.

    :param logits: shape :math:`B \times K` or :math:`B \times K \times H \times W`
    """
    logits = logits.to(torch.float64)
    points = (functional.max_p(logits), functional.log_neg_differential_entropy(logits))
    return torch.stack(points, dim=-1)


class GaussianKL(LogitsDetector):
    r"""
    The representation gap of *Towards Maximizing the Representation Gap between In-Domain &
    Out-of-Distribution Examples* as a detector.

    One Gaussian over :math:`x = (\text{Max.P}, \ln(-\text{D.Ent}))` is fitted to each of three
    groups: correctly classified, misclassified and OOD samples. The outlier score is

    .. math:: \ln N_\text{ood}(x) - \ln[w_c N_\text{correct}(x) + w_m N_\text{misclassified}(x)]

    with the groups' shares :math:`w_c + w_m = 1` of the in-domain samples.

    .. note:: The paper measures the gap but does not use it as a score; the score here is the
        likelihood ratio of the paper's three Gaussians. If the fit data lacks a group:

        - no OOD samples: the score is minus the logarithm of the in-domain mixture;
          ``predict_source`` and ``gap`` raise;
        - fewer than three misclassified samples: they are left out with a warning,
          :math:`w_m = 0` and their gap is NaN;
        - to a group without spread, a millionth of the variance of all samples is added.

        Only for two classes D.Ent can be zero, at :math:`\alpha = (1, 1)`, where its logarithm has
        a floor.
    """

    requires_fit = True
    info = detector_info(REPRESENTATION_GAP)

    def __init__(self, model: Module | None = None, ood_prior: float = 0.5) -> None:
        """
        Create the detector.

        :param model: network that returns logits; ``None`` to work on logits
        :param ood_prior: share of OOD samples that ``predict_source`` assumes
        """
        super().__init__()
        if not isinstance(ood_prior, float) or not 0 < ood_prior < 1:
            raise ValueError(f"ood_prior must be a number between 0 and 1, not {ood_prior!r}.")
        self.model = model
        self.ood_prior = ood_prior
        self.means: Tensor | None = None  # 3 x 2
        self.factors: Tensor | None = None  # 3 x 2 x 2, lower Cholesky factors
        self.shares: Tensor | None = None  # of the in-domain samples, and 1 for OOD; 0 is absent

    def fit(self, data_loader: DataLoader) -> Self:
        """
        Fit the three Gaussians to a data loader, and return the detector.

        .. note:: pytorch-ood's own ``fit`` drops OOD samples; here they are needed.

        :param data_loader: yields batches ``(x, y)``; in-domain labels :math:`\\geq 0`, OOD below
        """
        if self.model is None:
            raise ModelNotSetException
        logits, labels = [], []
        with torch.no_grad():
            for x, y in data_loader:
                logits.append(self.model(x if self.device is None else x.to(self.device)).cpu())
                labels.append(y.cpu())
        return self.fit_logits(torch.cat(logits), torch.cat(labels))

    def fit_logits(self, logits: Tensor, y: Tensor) -> Self:
        """
        Fit the three Gaussians to logits, and return the detector.

        :param logits: shape :math:`N \\times K` (or :math:`N \\times K \\times H \\times W`)
        :param y: labels of shape :math:`N` (or :math:`N \\times H \\times W`), below 0 for OOD
        :raises ValueError: if there are not enough different samples
        """
        functional.check_logits(logits)
        _check_labels(y, logits)
        return self.fit_points(representation(logits), logits.argmax(dim=1) == y, y < 0)

    def fit_points(self, points: Tensor, correct: Tensor, ood: Tensor) -> Self:
        """
        Fit the three Gaussians to points, and return the detector.

        Unlike all logits, the points fit into memory at once.

        :param points: of :func:`representation`, shape :math:`N \\times 2`
        :param correct: whether each sample is in-domain and was classified correctly, shape N
        :param ood: whether each sample is OOD, shape N
        :raises ValueError: if there are not enough different samples
        """
        groups = [points[correct], points[~correct & ~ood], points[ood]]
        self._fit_groups(groups, spread=points.reshape(-1, 2).var(dim=0))
        return self

    def predict_logits(self, logits: Tensor) -> Tensor:
        """
        Return outlier scores of shape :math:`B` (or :math:`B \\times H \\times W`).

        :param logits: shape :math:`B \\times K` (or :math:`B \\times K \\times H \\times W`)
        """
        densities = self._log_densities(logits)
        in_domain = torch.logsumexp(densities[..., :2], dim=-1)
        return densities[..., 2] - in_domain if self._has("ood") else -in_domain

    def predict_source(self, logits: Tensor) -> Tensor:
        """
        Return the probabilities of *confident in-domain*, *misclassified in-domain* and *OOD*.

        Their shape is :math:`B \\times 3` (or :math:`B \\times H \\times W \\times 3`).

        :param logits: shape :math:`B \\times K` (or :math:`B \\times K \\times H \\times W`)
        :raises ValueError: if the fit data had no OOD samples
        """
        densities = self._log_densities(logits)
        self._require_ood("predict_source")
        prior = torch.tensor([1 - self.ood_prior, 1 - self.ood_prior, self.ood_prior])
        return torch.softmax(densities + prior.to(densities).log(), dim=-1)

    def gap(self) -> dict[str, float]:
        """
        Return the paper's measure of the gap, in both directions.

        ``kl_correct_ood`` is KL(correct || OOD), ``kl_ood_correct`` the other direction; the same
        holds for ``misclassified``.

        :raises ValueError: if the fit data had no OOD samples
        """
        self._require_fit()
        self._require_ood("gap")
        pairs = [(a, b) for s in SOURCES[:2] for a, b in ((s, "ood"), ("ood", s))]
        return {f"kl_{a}_{b}": self._divergence(a, b) for a, b in pairs}

    def _fit_groups(self, groups: list[Tensor], spread: Tensor) -> None:
        correct, misclassified, ood = map(len, groups)
        _check_enough(correct, ood, spread)
        if misclassified < FEWEST:
            warnings.warn(
                f"{misclassified} misclassified samples are too few for a Gaussian; "
                "the in-domain density is fitted to the correctly classified samples only.",
                stacklevel=3,
            )
            misclassified = 0
        in_domain = correct + misclassified
        shares = [correct / in_domain, misclassified / in_domain, float(ood > 0)]
        self.shares = torch.tensor(shares, dtype=torch.float64)
        fitted = [
            _gaussian(points, spread) if share else _absent()
            for points, share in zip(groups, shares, strict=True)
        ]
        self.means = torch.stack([mean for mean, _ in fitted])
        self.factors = torch.stack([factor for _, factor in fitted])

    def _log_densities(self, logits: Tensor) -> Tensor:
        means, factors, shares = self._require_fit()
        points = representation(logits).unsqueeze(-2)
        mean, factor, share = (v.to(points.device) for v in (means, factors, shares))
        if not points.numel():  # older versions of torch cannot reshape empty tensors
            return share.new_empty((*points.shape[:-2], len(share)))
        return MultivariateNormal(mean, scale_tril=factor).log_prob(points) + share.log()

    def _divergence(self, first: str, second: str) -> float:
        means, factors, _ = self._require_fit()
        if not (self._has(first) and self._has(second)):
            return math.nan
        a, b = SOURCES.index(first), SOURCES.index(second)
        covariances = factors @ factors.mT
        return float(functional.gaussian_kl(means[a], covariances[a], means[b], covariances[b]))

    def _has(self, source: str) -> bool:
        return bool(self._require_fit()[2][SOURCES.index(source)] > 0)

    def _require_fit(self) -> tuple[Tensor, Tensor, Tensor]:
        if self.means is None or self.factors is None or self.shares is None:
            raise RequiresFittingException
        return self.means, self.factors, self.shares

    def _require_ood(self, what: str) -> None:
        if not self._has("ood"):
            raise ValueError(
                f"{what} needs OOD samples (labels below 0) in the data that GaussianKL is "
                "fitted on; there were none."
            )


def _check_labels(y: Tensor, logits: Tensor) -> None:
    if y.shape != logits.shape[:1] + logits.shape[2:]:
        raise ValueError(
            f"y must have one label per sample of logits {tuple(logits.shape)}, "
            f"not shape {tuple(y.shape)}."
        )
    if (y >= logits.shape[1]).any():
        raise ValueError(
            f"y must be below the number of classes, {logits.shape[1]}, not {int(y.max())}."
        )


def _check_enough(correct: int, ood: int, spread: Tensor) -> None:
    if correct < FEWEST:
        raise ValueError(
            f"logits must hold at least {FEWEST} correctly classified in-domain samples to "
            f"fit, not {correct}."
        )
    if 0 < ood < FEWEST:
        raise ValueError(f"logits must hold no OOD samples or at least {FEWEST}, not {ood}.")
    if (spread < ROUNDING).all():
        raise ValueError("logits must differ: all have the same Max.P and log(-D.Ent).")


def _gaussian(points: Tensor, spread: Tensor) -> tuple[Tensor, Tensor]:
    mean, covariance = points.mean(dim=0), torch.cov(points.T)
    flat = covariance.diagonal() < NO_SPREAD * spread
    covariance = covariance + torch.diag(ADDED_SPREAD * spread * flat)
    return mean, functional.cholesky(covariance, "the covariance of a group")


def _absent() -> tuple[Tensor, Tensor]:
    return torch.zeros(2, dtype=torch.float64), torch.eye(2, dtype=torch.float64)
