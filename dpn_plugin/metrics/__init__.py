"""Measurements as pure functions, thin over pytorch_ood.metrics."""

from dpn_plugin.metrics.calibration import calibration_metrics, edl_confidence, softmax_confidence
from dpn_plugin.metrics.misclassification import misclassification_metrics
from dpn_plugin.metrics.ood import ood_metrics
from dpn_plugin.metrics.summary import RESULT_COLUMNS, over_seeds
from dpn_plugin.metrics.temperature import fit_temperature, fit_translation

__all__ = [
    "RESULT_COLUMNS",
    "calibration_metrics",
    "edl_confidence",
    "fit_temperature",
    "fit_translation",
    "misclassification_metrics",
    "ood_metrics",
    "over_seeds",
    "softmax_confidence",
]
