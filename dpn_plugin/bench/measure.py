"""From stored outputs and scores to rows of ``results.csv``."""

import warnings
from collections.abc import Iterable, Mapping
from typing import Any

import numpy as np
import torch
from torch import Tensor

from dpn_plugin.detectors import GaussianKL
from dpn_plugin.detectors.gaussian_kl import representation
from dpn_plugin.metrics import (
    calibration_metrics,
    edl_confidence,
    fit_temperature,
    fit_translation,
    misclassification_metrics,
    ood_metrics,
    softmax_confidence,
)
from dpn_plugin.outputs import score_chunks

__all__ = ["Row", "calibration_rows", "classification_rows", "detector_rows", "gap_rows"]

Row = dict[str, Any]
Arrays = Mapping[str, np.ndarray]


def classification_rows(test: Arrays) -> list[Row]:
    """:return: the accuracy on in-domain test data"""
    accuracy = float(_correct(test).double().mean())
    return [_row("classification", metric="accuracy", value=accuracy)]


def detector_rows(
    detector: str, in_scores: Tensor, out_scores: Mapping[str, Tensor], test: Arrays
) -> list[Row]:
    """
    :param in_scores: of in-domain test samples
    :param out_scores: of OOD samples, by ``group.name``
    :param test: outputs for the in-domain test samples
    :return: OOD detection per set and group, and misclassification detection
    """
    rows = []
    for name, scores in out_scores.items():
        for metric, value in ood_metrics(in_scores, scores).items():
            rows.append(_row("ood", detector, name, metric, value))
    for metric, value in misclassification_metrics(in_scores, _correct(test)).items():
        rows.append(_row("misclassification", detector, "", metric, value))
    return with_group_means(rows)


def calibration_rows(held_out: Arrays, test: Arrays, ood: Mapping[str, Arrays]) -> list[Row]:
    """
    The paper's calibration error: equal shares of in-domain and OOD samples, after one number was
    fitted on held-out in-domain data (a temperature; a translation for evidential networks).
    """
    evidential = "evidence_logits" in test
    name = "evidence_logits" if evidential else "logits"
    fit = fit_translation if evidential else fit_temperature
    of = edl_confidence if evidential else softmax_confidence
    inside = held_out["labels"] >= 0
    logits, labels = (torch.from_numpy(held_out[each][inside]) for each in (name, "labels"))
    number = fit(logits, labels)

    def confidence(arrays: Arrays) -> Tensor:
        return score_chunks(lambda logits: of(logits, number), arrays[name])

    in_confidence, correct = confidence(test), _correct(test)
    rows = []
    for set_name, arrays in ood.items():
        found = calibration_metrics(in_confidence, correct, confidence(arrays))
        rows += [_row("calibration", "", set_name, m, v) for m, v in found.items()]
    alone = calibration_metrics(in_confidence, correct)
    rows += [_row("calibration", "", "", f"in_domain_{m}", v) for m, v in alone.items()]
    return with_group_means(rows)


def gap_rows(test: Arrays, ood: Mapping[str, Arrays]) -> list[Row]:
    """:return: the Gaussian-KL gap between in-domain test samples and every OOD set"""
    in_points, correct = score_chunks(representation, test["logits"]), _correct(test)
    rows = []
    for name, arrays in ood.items():
        out_points = score_chunks(representation, arrays["logits"])
        is_out = torch.arange(len(in_points) + len(out_points)) >= len(in_points)
        right = torch.cat([correct, torch.zeros(len(out_points), dtype=torch.bool)])
        try:
            scorer = GaussianKL().fit_points(torch.cat([in_points, out_points]), right, is_out)
        except ValueError as error:
            warnings.warn(f"There is no Gaussian-KL gap to {name}: {error}")
            continue
        rows += [_row("gap", "", name, metric, value) for metric, value in scorer.gap().items()]
    return with_group_means(rows)


def with_group_means(rows: Iterable[Row]) -> list[Row]:
    """:return: the rows, sets by their names alone, and the mean of every group's sets"""
    sums: dict[tuple[str, str, str, str], list[float]] = {}
    plain = []
    for row in rows:
        group, dot, name = row["dataset"].partition(".")
        plain.append({**row, "dataset": name} if dot else row)
        if dot:
            sums.setdefault((row["task"], row["detector"], group, row["metric"]), []).append(
                row["value"]
            )
    means = [_row(*key, value=float(np.mean(values))) for key, values in sums.items()]
    return plain + means


def _correct(arrays: Arrays) -> Tensor:
    predicted = score_chunks(lambda logits: logits.argmax(dim=1), arrays["logits"])
    return predicted == torch.from_numpy(np.array(arrays["labels"]))


def _row(
    task: str, detector: str = "", dataset: str = "", metric: str = "", value: float = 0.0
) -> Row:
    return {
        "task": task,
        "detector": detector,
        "dataset": dataset,
        "metric": metric,
        "value": value,
    }
