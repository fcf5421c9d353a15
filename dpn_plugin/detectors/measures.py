"""Detectors whose score is one measure of the Dirichlet distribution of the logits."""

from typing import ClassVar

from pytorch_ood.api import LogitsDetector
from torch import Tensor
from torch.nn import Module

from dpn_plugin import functional
from dpn_plugin.errors import UserTypeError
from dpn_plugin.papers import FLEXIBLE_EVIDENTIAL, PRIOR_NETWORKS, REPRESENTATION_GAP, detector_info


class _MeasureDetector(LogitsDetector):
    def __init__(self, model: Module | None = None) -> None:
        """
        Create the detector.

        :param model: network that returns logits; ``None`` to score logits with ``predict_logits``
        """
        super().__init__()
        self.model = model

    def predict_logits(self, logits: Tensor) -> Tensor:
        """
        Return outlier scores of shape :math:`B` (or :math:`B \\times H \\times W`).

        :param logits: shape :math:`B \\times K` (or :math:`B \\times K \\times H \\times W`)
        """
        return self.score(logits)

    @staticmethod
    def score(logits: Tensor) -> Tensor:
        """Return the outlier score as a pure function of the logits."""
        raise NotImplementedError


class MaxProbability(_MeasureDetector):
    r"""
    Max.P of *Predictive Uncertainty Estimation via Prior Networks*: the outlier score is

    .. math:: 1 - \max_c p_c, \quad p = \operatorname{softmax}(z)

    .. note:: Computed as :math:`s / (1 + s)`, so that samples whose Max.P rounds to one do not tie.
    """

    info = detector_info(PRIOR_NETWORKS)

    @staticmethod
    def score(logits: Tensor) -> Tensor:
        """Return the outlier score as a pure function of the logits."""
        return functional.one_minus_max_p(logits)


class PredictiveEntropy(_MeasureDetector):
    r"""
    Entropy of the expected prediction of *Predictive Uncertainty Estimation via Prior Networks*.

    .. math:: -\sum_c p_c \ln p_c
    """

    info = detector_info(PRIOR_NETWORKS)

    @staticmethod
    def score(logits: Tensor) -> Tensor:
        """Return the outlier score as a pure function of the logits."""
        return functional.entropy(logits)


class MutualInformation(_MeasureDetector):
    r"""
    Mutual information of *Predictive Uncertainty Estimation via Prior Networks*, between the class
    and the categorical distribution.

    .. math:: \sum_c p_c \bigl[\psi(\alpha_c + 1) - \psi(\alpha_0 + 1) - \ln p_c\bigr]
    """

    info = detector_info(PRIOR_NETWORKS)

    @staticmethod
    def score(logits: Tensor) -> Tensor:
        """Return the outlier score as a pure function of the logits."""
        return functional.mutual_information(logits)


class Precision(_MeasureDetector):
    r"""
    Precision of *Towards Maximizing the Representation Gap between In-Domain & Out-of-Distribution
    Examples*: the outlier score is

    .. math:: -\ln \alpha_0 = -\operatorname{logsumexp}(z)

    .. note:: The logarithm ranks like :math:`\alpha_0` (and like EPKL, :math:`(K-1)/\alpha_0`)
        and cannot overflow. It equals pytorch-ood's ``EnergyBased`` at temperature 1.
    """

    info = detector_info(REPRESENTATION_GAP)

    @staticmethod
    def score(logits: Tensor) -> Tensor:
        """Return the outlier score as a pure function of the logits."""
        return -functional.log_precision(logits)


class TotalVariance(_MeasureDetector):
    r"""
    The sum of variances of *Uncertainty Estimation by Flexible Evidential Deep Learning*: the
    outlier score is

    .. math:: \ln \sum_c \operatorname{Var} \pi_c = \ln \frac{1 - \sum_c p_c^2}{1 + \alpha_0}

    .. note:: The logarithm ranks like the sum and cannot underflow. The logits of the method
        ``f-edl`` describe the Dirichlet that has the same sum as its flexible Dirichlet.
    """

    info = detector_info(FLEXIBLE_EVIDENTIAL)

    @staticmethod
    def score(logits: Tensor) -> Tensor:
        """Return the outlier score as a pure function of the logits."""
        return functional.log_total_variance(logits)


class DifferentialEntropy(_MeasureDetector):
    r"""
    Differential entropy of *Predictive Uncertainty Estimation via Prior Networks*: the outlier
    score is

    .. math:: -\ln(-\text{D.Ent}), \quad
        \text{D.Ent} = \sum_c \ln\Gamma(\alpha_c) - \ln\Gamma(\alpha_0)
        - \sum_c (\alpha_c - 1) (\psi(\alpha_c) - \psi(\alpha_0)) \leq 0

    .. note:: The logarithm ranks like D.Ent. It is finite for all finite logits, whereas D.Ent is
        minus infinity for float32 logits below -88.

    .. note:: A network trained with DPN- outputs concentrations below one for OOD samples. Their
        differential entropy is *low*, so the order is reversed; ``invert=True`` corrects it.
    """

    info = detector_info(PRIOR_NETWORKS)
    hyperparameter_space: ClassVar[dict[str, list]] = {"invert": [False, True]}

    def __init__(self, model: Module | None = None, invert: bool = False) -> None:
        """
        Create the detector.

        :param model: network that returns logits; ``None`` to score logits with ``predict_logits``
        :param invert: whether a low differential entropy means OOD, as for DPN-
        """
        super().__init__(model)
        if not isinstance(invert, bool):
            raise UserTypeError(f"invert must be True or False, not {invert!r}.")
        self.invert = invert

    def predict_logits(self, logits: Tensor) -> Tensor:
        """
        Return outlier scores of shape :math:`B` (or :math:`B \\times H \\times W`).

        :param logits: shape :math:`B \\times K` (or :math:`B \\times K \\times H \\times W`)
        """
        score = self.score(logits)
        return -score if self.invert else score

    @staticmethod
    def score(logits: Tensor) -> Tensor:
        """Return the outlier score as a pure function of the logits."""
        return -functional.log_neg_differential_entropy(logits)
