"""Fit, tune and score detectors from stored outputs if possible, else with the model."""

from dpn_plugin.detectors.stored.fitting import fit
from dpn_plugin.detectors.stored.reading import reads
from dpn_plugin.detectors.stored.scoring import scores
from dpn_plugin.detectors.stored.tuning import tune

__all__ = ["fit", "reads", "scores", "tune"]
