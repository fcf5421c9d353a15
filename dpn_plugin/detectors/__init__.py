"""Detectors of the paper, as pytorch-ood detectors: a larger score is more OOD."""

from dpn_plugin.detectors.gaussian_kl import GaussianKL
from dpn_plugin.detectors.measures import (
    DifferentialEntropy,
    MaxProbability,
    MutualInformation,
    Precision,
    PredictiveEntropy,
)

__all__ = [
    "DifferentialEntropy",
    "GaussianKL",
    "MaxProbability",
    "MutualInformation",
    "Precision",
    "PredictiveEntropy",
]
