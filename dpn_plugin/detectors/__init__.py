"""
Detectors of the paper, and all detectors by name, wired to any backbone.

They are pytorch-ood detectors: a larger score is more OOD. They are fitted, tuned and scored from
stored outputs if possible.
"""

from dpn_plugin.detectors.combination import Combination, parse_combination
from dpn_plugin.detectors.create import create_detector, why_not_applicable, wired
from dpn_plugin.detectors.density_aware import DensityAware
from dpn_plugin.detectors.gaussian_kl import GaussianKL, representation
from dpn_plugin.detectors.measures import (
    DifferentialEntropy,
    MaxProbability,
    MutualInformation,
    Precision,
    PredictiveEntropy,
    TotalVariance,
)
from dpn_plugin.detectors.names import find_detectors
from dpn_plugin.detectors.stored import (
    Together,
    checked_scores,
    fit,
    fits_on,
    reads,
    score_function,
    scores,
    tune,
)
from dpn_plugin.detectors.unit_length import RMDPP, MahalanobisPP, unit_length
from dpn_plugin.detectors.wiring import NotApplicable, preserved_state

__all__ = [
    "RMDPP",
    "Combination",
    "DensityAware",
    "DifferentialEntropy",
    "GaussianKL",
    "MahalanobisPP",
    "MaxProbability",
    "MutualInformation",
    "NotApplicable",
    "Precision",
    "PredictiveEntropy",
    "Together",
    "TotalVariance",
    "checked_scores",
    "create_detector",
    "find_detectors",
    "fit",
    "fits_on",
    "parse_combination",
    "preserved_state",
    "reads",
    "representation",
    "score_function",
    "scores",
    "tune",
    "unit_length",
    "why_not_applicable",
    "wired",
]
