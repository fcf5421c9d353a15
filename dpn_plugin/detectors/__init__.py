"""
Detectors of the paper, as pytorch-ood detectors: a larger score is more OOD; and all detectors
wired to any backbone, fitted and scored from stored outputs.
"""

from dpn_plugin.detectors.applicability import NotApplicable
from dpn_plugin.detectors.fitting import fit
from dpn_plugin.detectors.gaussian_kl import GaussianKL
from dpn_plugin.detectors.measures import (
    DifferentialEntropy,
    MaxProbability,
    MutualInformation,
    Precision,
    PredictiveEntropy,
)
from dpn_plugin.detectors.reading import reads
from dpn_plugin.detectors.scoring import scores
from dpn_plugin.detectors.tuning import tune
from dpn_plugin.detectors.wiring import wired

__all__ = [
    "DifferentialEntropy",
    "GaussianKL",
    "MaxProbability",
    "MutualInformation",
    "NotApplicable",
    "Precision",
    "PredictiveEntropy",
    "fit",
    "reads",
    "scores",
    "tune",
    "wired",
]
