"""Trained run x outputs x detectors -> figures, and their record."""

from dpn_plugin.evaluation.evaluate import Evaluation
from dpn_plugin.evaluation.held_out_figures import held_out_figures
from dpn_plugin.evaluation.in_memory import evaluate as evaluate_model
from dpn_plugin.evaluation.peak_memory import PeakMemory
from dpn_plugin.evaluation.plane import PLANE_SETS, plane_samples
from dpn_plugin.evaluation.record import (
    EVALUATION_FILE,
    DetectorEvaluation,
    EvaluationRecord,
    OutputKeys,
    ResultRow,
    detector_code,
    read_evaluation,
)
from dpn_plugin.evaluation.sample_record import (
    SAMPLES_FILE,
    SampleGroup,
    SamplesRecord,
    ShownSample,
    read_samples,
)
from dpn_plugin.evaluation.scorers import BINARY, FOR_AVERAGES, OWN_SCORE, scorer_names
from dpn_plugin.evaluation.stored_scores import read_scores, write_scores
from dpn_plugin.evaluation.warning_collector import (
    WarningCollector,
    collect_warnings,
    join_messages,
)

__all__ = [
    "BINARY",
    "EVALUATION_FILE",
    "FOR_AVERAGES",
    "OWN_SCORE",
    "PLANE_SETS",
    "SAMPLES_FILE",
    "DetectorEvaluation",
    "Evaluation",
    "EvaluationRecord",
    "OutputKeys",
    "PeakMemory",
    "ResultRow",
    "SampleGroup",
    "SamplesRecord",
    "ShownSample",
    "WarningCollector",
    "collect_warnings",
    "detector_code",
    "evaluate_model",
    "held_out_figures",
    "join_messages",
    "plane_samples",
    "read_evaluation",
    "read_samples",
    "read_scores",
    "scorer_names",
    "write_scores",
]
