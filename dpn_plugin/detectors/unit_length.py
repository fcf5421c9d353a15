"""
Detectors on features of unit length.

The length of a feature vector varies between images for reasons that have little to do with what
they show, and Gaussians fitted to the features of networks trained on ImageNet suffer from it most.
"""

from collections.abc import Callable
from functools import update_wrapper
from typing import Any, Self

from pytorch_ood.api import Detector
from pytorch_ood.detector import RMD, Mahalanobis
from torch import Tensor
from torch.nn import functional as F

from dpn_plugin.errors import UserTypeError
from dpn_plugin.papers import FEATURE_NORMALIZATION, features_detector_info

#: the methods of detectors that take features, B x D or as maps B x D x 1 x 1
_METHODS = ("fit_features", "predict_features", "fit_feature_maps", "predict_feature_maps")


def unit_length(features: Tensor) -> Tensor:
    """
    Return features scaled to a Euclidean length of 1; zeros stay zeros.

    :param features: B x D, or B x D x 1 x 1
    """
    return F.normalize(features, dim=1)


class _FitsUnitLength:
    """Scales features to unit length before the detector behind it in the order of bases."""

    info = features_detector_info(FEATURE_NORMALIZATION)

    def fit_features(self, z: Tensor, y: Tensor) -> Self:
        """
        Fit the Gaussians to features of unit length, and return the detector.

        :param z: features of any length, :math:`N \\times D`
        :param y: labels of shape :math:`N`, contiguous from 0
        """
        return super().fit_features(unit_length(z), y)  # type: ignore[misc]

    def predict_features(self, z: Tensor) -> Tensor:
        """
        Return outlier scores of shape :math:`B`.

        :param z: features of any length, :math:`B \\times D`
        """
        return super().predict_features(unit_length(z))  # type: ignore[misc]


class MahalanobisPP(_FitsUnitLength, Mahalanobis):
    r"""
    Mahalanobis++ of *Mahalanobis++: Improving OOD Detection via Feature Normalization*.

    The score of :class:`pytorch_ood.detector.Mahalanobis` for features :math:`z / \lVert z \rVert`:

    .. math:: \frac{1}{2} \min_k (\hat z - \mu_k)^\top \Sigma^{-1} (\hat z - \mu_k),
        \quad \hat z = z / \lVert z \rVert_2
    """


class RMDPP(_FitsUnitLength, RMD):
    r"""
    The relative Mahalanobis distance on features of unit length, from *Mahalanobis++: Improving OOD
    Detection via Feature Normalization*.

    .. math:: \min_k d_k(\hat z) - d_0(\hat z), \quad \hat z = z / \lVert z \rVert_2

    See :class:`pytorch_ood.detector.RMD` for :math:`d_k` and :math:`d_0`.
    """


class OnUnitLength:
    """
    A method of a detector that scales its features to unit length first.

    It can be copied and pickled together with its detector, which a closure cannot.

    :param method: the bound method; its first argument are features
    """

    def __init__(self, method: Callable[..., Any]) -> None:
        update_wrapper(self, method)
        self.method = method

    def __call__(self, features: Tensor, *more: Any) -> Any:
        """Call the method with features of unit length."""
        return self.method(unit_length(features), *more)


def normalized(what: str, detector: Detector, kind: str) -> Detector:
    """
    Let a detector of features scale them to unit length, and return it.

    :param what: the detector in the error message
    :param detector: any that reads features
    :param kind: what it reads
    :raises UserTypeError: if it does not read features
    """
    if kind != "features":
        raise UserTypeError(
            f"{what} reads {kind}: normalize=True is an option of detectors of features."
        )
    for name in _METHODS:
        if hasattr(detector, name):
            # past __setattr__, because the detector may be a frozen dataclass
            vars(detector)[name] = OnUnitLength(getattr(detector, name))
    return detector
