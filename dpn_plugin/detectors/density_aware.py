"""The detector that scales logits by the density of the features."""

import math
from collections.abc import Callable
from typing import Self

import torch
from pytorch_ood.api import FeaturesDetector, ModelNotSetException, RequiresFittingException
from pytorch_ood.utils import extract_features
from sklearn.covariance import ledoit_wolf
from torch import Tensor
from torch.utils.data import DataLoader

from dpn_plugin import functional
from dpn_plugin.errors import UserError, unknown_name
from dpn_plugin.papers import DENSITY_AWARE, features_detector_info

#: the measures of the scaled Dirichlet, larger for OOD samples
_MEASURES: dict[str, Callable[[Tensor], Tensor]] = {
    "precision": lambda logits: -functional.log_precision(logits),
    "maxp": functional.one_minus_max_p,
    "entropy": functional.entropy,
    "mi": functional.mutual_information,
}


class DensityAware(FeaturesDetector):
    r"""
    The prediction of *Uncertainty Estimation by Density Aware Evidential Deep Learning* (DAEDL).

    A Gaussian with a covariance of its own is fitted to the features of each class. With the
    density :math:`q(f) = \sum_k N(f; \mu_k, \Sigma_k)` of features :math:`f` and the smallest and
    largest :math:`\ln q` of the training samples, the concentrations are

    .. math:: \alpha_c = e^{s z_c}, \quad
        s = \frac{\ln q(f) - \min \ln q}{\max \ln q - \min \ln q}, \text{ at least 0 and at most 1.}

    Far from the training data :math:`s = 0` and all concentrations are one. The score is a measure
    of this Dirichlet: :math:`-\ln \alpha_0` unless chosen otherwise.

    .. note:: Samples below the lowest density of the training data have equal scores, as in the
        paper.

    .. note:: The authors take the sample covariance, plus the smallest number for which it has a
        Cholesky factor. With few samples of a class for the number of features, it fits the
        training samples so well that all others lie below their lowest density. Here it is shrunk
        as Ledoit and Wolf propose (:func:`sklearn.covariance.ledoit_wolf`); the shrinkage vanishes
        for many samples.
    """

    requires_fit = True
    info = features_detector_info(DENSITY_AWARE)

    def __init__(
        self,
        encoder: Callable[[Tensor], Tensor] | None = None,
        head: Callable[[Tensor], Tensor] | None = None,
        measure: str = "precision",
    ) -> None:
        """
        Create the detector.

        :param encoder: gives features B x D; ``None`` to work on features
        :param head: gives logits B x K for features
        :param measure: of the scaled Dirichlet: ``precision``, ``maxp``, ``entropy`` or ``mi``
        """
        super().__init__()
        if measure not in _MEASURES:
            raise unknown_name("measure", measure, _MEASURES)
        self.encoder, self.head, self.measure = encoder, head, measure
        self.means: Tensor | None = None  # K x D
        self.inverses: Tensor | None = None  # K x D x D, of the lower Cholesky factors
        self.constants: Tensor | None = None  # K, ln of the densities at the means
        self.range: Tensor | None = None  # the smallest and largest log-density of training data

    def fit(self, data_loader: DataLoader) -> Self:
        """
        Fit the density to a data loader, and return the detector.

        :param data_loader: yields batches ``(x, y)``; samples with labels below 0 are left out
        """
        if self.encoder is None:
            raise ModelNotSetException
        return self.fit_features(*extract_features(data_loader, self.encoder, self.device))

    def fit_features(self, x: Tensor, y: Tensor) -> Self:
        """
        Fit a Gaussian to the features of each class, and return the detector.

        :param x: features of shape :math:`N \\times D`
        :param y: labels of shape :math:`N`; samples with labels below 0 are left out
        :raises UserError: if a class has fewer than two samples, or all densities are equal
        """
        x, y = x[y >= 0].double(), y[y >= 0]
        groups = [x[y == label] for label in y.unique()]
        if not groups or min(map(len, groups)) < 2:
            raise UserError("A covariance for each class needs at least two samples of each.")
        factors = torch.stack([_factor(group) for group in groups])
        self.means = torch.stack([group.mean(dim=0) for group in groups])
        eye = torch.eye(x.shape[1], dtype=x.dtype, device=x.device)
        self.inverses = torch.linalg.solve_triangular(factors, eye, upper=False)
        logdet = factors.diagonal(dim1=1, dim2=2).log().sum(dim=1)
        self.constants = -logdet - x.shape[1] / 2 * math.log(2 * math.pi)
        densities = torch.cat([self.log_density(part) for part in x.split(256)])
        self.range = torch.stack([densities.min(), densities.max()])
        if not self.range[0] < self.range[1]:
            raise UserError("All training samples have the same density; it cannot be normalised.")
        return self

    def log_density(self, features: Tensor) -> Tensor:
        """
        Return the logarithm of the density, of shape B.

        :param features: :math:`B \\times D`
        :raises RequiresFittingException: if the detector is not fitted
        """
        if self.means is None or self.inverses is None or self.constants is None:
            raise RequiresFittingException
        centred = features.double() - self.means.unsqueeze(1)  # K x B x D
        # one product for each class: with the samples first, torch would copy the factors for each
        distances = torch.bmm(centred, self.inverses.mT).square().sum(dim=-1)
        return torch.logsumexp(self.constants - 0.5 * distances.T, dim=1)

    def scaled_logits(self, features: Tensor) -> Tensor:
        """
        Return the log-concentrations, the logits times the normalised density.

        :param features: :math:`B \\times D`
        :raises ModelNotSetException: if there is no head
        """
        if self.head is None:
            raise ModelNotSetException
        density = self.log_density(features)
        assert self.range is not None  # it is fitted together with the density
        scale = ((density - self.range[0]) / (self.range[1] - self.range[0])).clamp(0, 1)
        return scale.unsqueeze(1) * self.head(features).double()

    def predict(self, x: Tensor) -> Tensor:
        """
        Return outlier scores of shape B.

        :param x: a batch of inputs
        """
        if self.encoder is None:
            raise ModelNotSetException
        return self.predict_features(self.encoder(x))

    @torch.no_grad()
    def predict_features(self, x: Tensor) -> Tensor:
        """
        Return outlier scores of shape B.

        :param x: features, :math:`B \\times D`
        """
        return _MEASURES[self.measure](self.scaled_logits(x))


def _factor(features: Tensor) -> Tensor:
    """Return the lower Cholesky factor of the shrunk covariance."""
    covariance, _ = ledoit_wolf(features.cpu().numpy())
    factor, failed = torch.linalg.cholesky_ex(torch.from_numpy(covariance).to(features.device))
    if int(failed):
        raise UserError("The features of a class are all equal; they have no density.")
    return factor
