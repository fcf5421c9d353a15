"""
Rows of ``results.csv`` about covariate shift: accuracy, calibration, rejection, full spectrum.

The severities of a shift have their mean under the name of the shift, all shifted sets theirs under
``shift``, and those of one severity theirs under ``shift@SEVERITY``.
"""

from collections.abc import Iterable, Mapping

import numpy as np
import torch
from torch import Tensor

from dpn_plugin.data import split_severity
from dpn_plugin.evaluation.record import ResultRow
from dpn_plugin.evaluation.rows import (
    Arrays,
    fit_confidence,
    is_correct,
    metric_rows,
    with_group_means,
)
from dpn_plugin.metrics import calibration_metrics, ood_metrics, rejected_share

SHIFT = "shift"
FULL_SPECTRUM = "full_spectrum"
#: the share of in-domain test samples that the threshold of ``rejected95`` accepts
ACCEPTED = 0.95


def shift_rows(held_out: Arrays, test: Arrays, shifted: Mapping[str, Arrays]) -> list[ResultRow]:
    """
    Return accuracy and calibration error of every shifted set, and the accuracy of the full
    spectrum: in-domain and shifted test samples together.

    :param held_out: outputs for held-out samples, which calibrate the confidence
    :param test: outputs for in-domain test samples
    :param shifted: outputs for shifted samples, by name
    """
    if not shifted:
        return []
    confidence = fit_confidence(held_out)
    rows, all_correct = [], [is_correct(test)]
    for name, arrays in shifted.items():
        correct = is_correct(arrays)
        all_correct.append(correct)
        found = calibration_metrics(confidence(arrays), correct)
        rows += metric_rows(SHIFT, {"accuracy": _share(correct), **found}, name)
    overall = {"accuracy": _share(torch.cat(all_correct))}
    return _with_shift_means(rows) + metric_rows(FULL_SPECTRUM, overall)


def detector_shift_rows(
    detector: str,
    in_scores: Tensor,
    shift_scores: Mapping[str, Tensor],
    out_scores: Mapping[str, Tensor],
) -> list[ResultRow]:
    """
    Return the share of each shifted set that is rejected by the threshold which accepts 95 % of the
    in-domain test samples, and full-spectrum OOD detection: in-domain and shifted samples together
    against every OOD set, as in OpenOOD's FS-OOD.

    :param detector: its name
    :param in_scores: of in-domain test samples
    :param shift_scores: of shifted samples, by name
    :param out_scores: of OOD samples, by ``group.name``
    """
    if not shift_scores:
        return []
    rows = []
    for name, scores in {"": in_scores, **shift_scores}.items():
        share = rejected_share(in_scores, scores, ACCEPTED)
        rows += metric_rows(SHIFT, {"rejected95": share}, name, detector)
    spectrum = torch.cat([in_scores.double(), *(each.double() for each in shift_scores.values())])
    full = []
    for name, scores in out_scores.items():
        full += metric_rows(FULL_SPECTRUM, ood_metrics(spectrum, scores), name, detector)
    return _with_shift_means(rows) + with_group_means(full)


def _share(correct: Tensor) -> float:
    return float(correct.double().mean())


def _with_shift_means(rows: Iterable[ResultRow]) -> list[ResultRow]:
    """Return the rows, with the means of every shift, of every severity, and of all sets."""
    values: dict[tuple[str, str, str], list[float]] = {}
    found = list(rows)
    for row in found:
        shift, severity = split_severity(row.dataset)
        own = [] if severity is None else [shift, f"{SHIFT}@{severity}"]
        for name in [*own, SHIFT] if row.dataset else []:
            values.setdefault((row.detector, name, row.metric), []).append(row.value)
    for (detector, name, metric), each in values.items():
        found += metric_rows(SHIFT, {metric: float(np.mean(each))}, name, detector)
    return found
