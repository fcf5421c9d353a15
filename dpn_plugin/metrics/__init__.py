"""Figures of merit as pure functions, thin over ``pytorch_ood.metrics``."""

from dpn_plugin.metrics.calibration import (
    calibration_metrics,
    edl_confidence,
    equal_shares,
    fit_temperature,
    fit_translation,
    softmax_confidence,
)
from dpn_plugin.metrics.combination import FisherCombination
from dpn_plugin.metrics.conformal import (
    benjamini_hochberg,
    conformal_p_values,
    conformal_p_values_by_class,
    conformal_threshold,
    conformal_thresholds_by_class,
    required_calibration,
)
from dpn_plugin.metrics.intervals import (
    AurocInterval,
    auroc_interval,
    auroc_interval_from_counts,
)
from dpn_plugin.metrics.ood import misclassification_metrics, ood_metrics, rejected_share
from dpn_plugin.metrics.paired import (
    PairedDifference,
    Placements,
    find_placements,
    paired_differences,
)
from dpn_plugin.metrics.selective import RiskCoverage, risk_coverage, selective_metrics
from dpn_plugin.metrics.summary import RESULT_COLUMNS, over_seeds

__all__ = [
    "RESULT_COLUMNS",
    "AurocInterval",
    "FisherCombination",
    "PairedDifference",
    "Placements",
    "RiskCoverage",
    "auroc_interval",
    "auroc_interval_from_counts",
    "benjamini_hochberg",
    "calibration_metrics",
    "conformal_p_values",
    "conformal_p_values_by_class",
    "conformal_threshold",
    "conformal_thresholds_by_class",
    "edl_confidence",
    "equal_shares",
    "find_placements",
    "fit_temperature",
    "fit_translation",
    "misclassification_metrics",
    "ood_metrics",
    "over_seeds",
    "paired_differences",
    "rejected_share",
    "required_calibration",
    "risk_coverage",
    "selective_metrics",
    "softmax_confidence",
]
