"""Fit, tune and score detectors from stored outputs if possible, else with the model."""

from dpn_plugin.detectors.stored.fitting import fit
from dpn_plugin.detectors.stored.reading import fits_on, reads
from dpn_plugin.detectors.stored.scoring import checked_scores, score_function, scores
from dpn_plugin.detectors.stored.together import Together
from dpn_plugin.detectors.stored.tuning import tune

__all__ = [
    "Together",
    "checked_scores",
    "fit",
    "fits_on",
    "reads",
    "score_function",
    "scores",
    "tune",
]
