"""From outputs and scores to rows of ``results.csv``."""

import warnings
from collections.abc import Callable, Iterable, Mapping

import numpy as np
import torch
from torch import Tensor

from dpn_plugin.detectors import GaussianKL, representation
from dpn_plugin.evaluation.record import ResultRow
from dpn_plugin.metrics import (
    calibration_metrics,
    conformal_threshold,
    edl_confidence,
    fit_temperature,
    fit_translation,
    misclassification_metrics,
    ood_metrics,
    required_calibration,
    selective_metrics,
    softmax_confidence,
)
from dpn_plugin.outputs import score_chunks

Arrays = Mapping[str, np.ndarray]

#: the promised shares of rejected in-domain samples
ALPHAS = (0.01, 0.05, 0.1)


def classification_rows(test: Arrays) -> list[ResultRow]:
    """Return the accuracy on in-domain test data."""
    accuracy = float(is_correct(test).double().mean())
    return [ResultRow(task="classification", metric="accuracy", value=accuracy)]


def detector_rows(
    detector: str, in_scores: Tensor, out_scores: Mapping[str, Tensor], test: Arrays
) -> list[ResultRow]:
    """
    Return OOD detection per set and group, misclassification detection, and selective
    classification: of in-domain samples, and of these and the samples of every OOD set.

    :param detector: its name
    :param in_scores: of in-domain test samples
    :param out_scores: of OOD samples, by ``group.name``
    :param test: outputs for the in-domain test samples
    """
    rows, correct = [], is_correct(test)
    for name, scores in out_scores.items():
        rows += metric_rows("ood", ood_metrics(in_scores, scores), name, detector)
    found = misclassification_metrics(in_scores, correct)
    rows += metric_rows("misclassification", found, "", detector)
    rows += metric_rows("selective", selective_metrics(in_scores, correct), "", detector)
    for name, scores in out_scores.items():
        found = selective_metrics(in_scores, correct, scores)
        rows += metric_rows("selective", found, name, detector)
    return with_group_means(rows)


def decision_rows(
    detector: str, calibration: Tensor, in_scores: Tensor, out_scores: Mapping[str, Tensor]
) -> list[ResultRow]:
    """
    Return the share of in-domain samples, and of every OOD set, that is rejected at each of
    :data:`ALPHAS`; levels that need more calibration samples are left out with a warning.

    :param detector: its name
    :param calibration: scores of calibration samples
    :param in_scores: of in-domain test samples
    :param out_scores: of OOD samples, by ``group.name``
    """
    n, rows = len(calibration), []
    for alpha in ALPHAS:
        if n < required_calibration(alpha):
            continue
        threshold = conformal_threshold(calibration, alpha)
        for name, scores in {"": in_scores, **out_scores}.items():
            share = float((scores.double() > threshold).double().mean())
            rows += metric_rows("decision", {f"rejected@{alpha:g}": share}, name, detector)
    left_out = [alpha for alpha in ALPHAS if n < required_calibration(alpha)]
    if left_out:
        levels = " and ".join(f"{alpha:g}" for alpha in left_out)
        needed = required_calibration(left_out[0])
        warnings.warn(
            f"There are no decisions at alpha = {levels}: alpha = {left_out[0]:g} needs at least "
            f"{needed} calibration samples, and there are {n}."
        )
    return with_group_means(rows)


def calibration_rows(
    held_out: Arrays, test: Arrays, ood: Mapping[str, Arrays], samples: int | None = None
) -> list[ResultRow]:
    """
    Return the paper's calibration error: equal shares of in-domain and OOD samples, after one
    number was fitted on held-out in-domain data (a temperature; a translation for evidential
    networks).

    :param held_out: outputs for held-out samples
    :param test: outputs for in-domain test samples
    :param ood: outputs for OOD samples, by ``group.name``
    :param samples: the largest number of in-domain and of OOD samples that are drawn for a set;
        the same in-domain samples for all networks and for all sets that have so many
    """
    confidence = fit_confidence(held_out)
    in_confidence, correct = confidence(test), is_correct(test)
    rows = []
    for set_name, arrays in ood.items():
        found = calibration_metrics(in_confidence, correct, confidence(arrays), most=samples)
        rows += metric_rows("calibration", found, set_name)
    in_domain = calibration_metrics(in_confidence, correct)
    rows += metric_rows("calibration", {f"in_domain_{m}": v for m, v in in_domain.items()})
    return with_group_means(rows)


def fit_confidence(held_out: Arrays) -> Callable[[Arrays], Tensor]:
    """
    Return what gives the calibrated confidence of outputs: one number (a temperature; a translation
    for evidential networks) is fitted to held-out in-domain samples.

    :param held_out: outputs for held-out samples
    """
    evidential = "evidence_logits" in held_out
    name = "evidence_logits" if evidential else "logits"
    fit = fit_translation if evidential else fit_temperature
    confidence_of = edl_confidence if evidential else softmax_confidence
    inside = held_out["labels"] >= 0
    logits, labels = (torch.from_numpy(held_out[each][inside]) for each in (name, "labels"))
    fitted = fit(logits, labels)
    return lambda arrays: score_chunks(lambda logits: confidence_of(logits, fitted), arrays[name])


def gap_rows(test: Arrays, ood: Mapping[str, Arrays]) -> list[ResultRow]:
    """Return the Gaussian-KL gap between in-domain test samples and every OOD set."""
    in_points, correct = score_chunks(representation, test["logits"]), is_correct(test)
    rows = []
    for name, arrays in ood.items():
        out_points = score_chunks(representation, arrays["logits"])
        is_ood = torch.arange(len(in_points) + len(out_points)) >= len(in_points)
        all_correct = torch.cat([correct, torch.zeros(len(out_points), dtype=torch.bool)])
        points = torch.cat([in_points, out_points])
        try:
            gap = GaussianKL().fit_points(points, all_correct, is_ood).gap()
        except ValueError as error:
            warnings.warn(f"There is no Gaussian-KL gap to {name}: {error}")
            continue
        rows += metric_rows("gap", gap, name)
    return with_group_means(rows)


def metric_rows(
    task: str, metrics: Mapping[str, float], dataset: str = "", detector: str = ""
) -> list[ResultRow]:
    """Return a row for each metric."""
    return [
        ResultRow(task=task, detector=detector, dataset=dataset, metric=metric, value=value)
        for metric, value in metrics.items()
    ]


def with_group_means(rows: Iterable[ResultRow]) -> list[ResultRow]:
    """Return the rows, with sets by their names alone, and the mean of every group's sets."""
    values: dict[tuple[str, str, str, str], list[float]] = {}
    found = []
    for row in rows:
        group, dot, name = row.dataset.partition(".")
        found.append(row.model_copy(update={"dataset": name}) if dot else row)
        if dot:
            key = row.task, row.detector, group, row.metric
            values.setdefault(key, []).append(row.value)
    for (task, detector, group, metric), each in values.items():
        found += metric_rows(task, {metric: float(np.mean(each))}, group, detector)
    return found


def is_correct(arrays: Arrays) -> Tensor:
    """Return whether each sample was classified correctly; OOD samples never are."""
    predicted = score_chunks(lambda logits: logits.argmax(dim=1), arrays["logits"])
    return predicted == torch.from_numpy(np.array(arrays["labels"]))
