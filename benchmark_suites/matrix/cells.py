"""One detector on one backbone."""

import time
from dataclasses import dataclass

import torch
from sklearn.metrics import roc_auc_score
from torch import Tensor

import dpn_plugin
from benchmark_suites.matrix.subjects import Outputs, Samples, Subject
from dpn_plugin.detectors import NotApplicable, fit, reads, scores
from dpn_plugin.errors import UserError

__all__ = ["UNSTEADY", "Cell", "cell", "reason_for_unsteadiness"]

#: why scores depend on the batch, by detector or by detector and backbone
UNSTEADY = {
    "mcd": "every batch draws its own dropout masks",
    "gram on test_convnext": "sums over channels after a layer norm are zero up to rounding,"
    " so only rounding errors are compared",
}

#: the largest allowed difference, relative to the standard deviation and the size of the scores
TOLERANCE, ROUNDING = 1e-2, 2e-6


@dataclass(frozen=True)
class Cell:
    """
    The result of one detector on one backbone.

    :param detector: its name
    :param backbone: its name
    :param reason: why there are no scores; the other fields keep their defaults then
    :param failed: whether it failed while fitting or scoring
    :param auroc: of digits against noise
    :param steady: whether scores are the same for any batching
    :param reads: what is scored
    :param seconds: the time to fit and to score
    """

    detector: str
    backbone: str
    reason: str = ""
    failed: bool = False
    auroc: float = float("nan")
    steady: bool = True
    reads: str = ""
    seconds: float = 0.0


def cell(name: str, subject: Subject, batch: int = 50) -> Cell:
    """
    Fit and score a detector, and return the result.

    :param name: the name of the detector
    :param subject: the backbone and the data
    :param batch: the batch size of detectors that read inputs
    """
    backbone = subject.backbone.name
    try:
        detector = dpn_plugin.create_detector(name, subject.backbone)
    except NotApplicable as reason:
        return Cell(name, backbone, reason=str(reason))
    start = time.monotonic()
    try:
        fit(detector, subject.fit_outputs, subject.fit.batches(batch))
        found = scores(detector, subject.test_outputs, subject.test.batches(batch))
    except UserError as reason:
        return Cell(name, backbone, reason=str(reason), failed=True)
    seconds = time.monotonic() - start
    auroc = roc_auc_score(subject.test_outputs["labels"] < 0, found)
    steady = _is_steady(detector, subject, found)
    return Cell(name, backbone, "", False, auroc, steady, reads(detector), seconds)


def reason_for_unsteadiness(cell: Cell) -> str | None:
    """Return the known reason why scores depend on the batch, or ``None``."""
    return UNSTEADY.get(cell.detector) or UNSTEADY.get(f"{cell.detector} on {cell.backbone}")


def _is_steady(detector: object, subject: Subject, found: Tensor) -> bool:
    """Compare the scores of a few samples in batches of 1, 8 and all."""
    few = torch.cat([torch.arange(8), len(found) - 1 - torch.arange(8)])
    samples = Samples(subject.test.x[few], subject.test.y[few])
    outputs = {name: array[few.numpy()] for name, array in subject.test_outputs.items()}
    allowed = TOLERANCE * found.std() + ROUNDING * found.abs().max()
    variants = [_score_in_batches(detector, outputs, samples, size) for size in (1, 8, len(few))]
    return all(bool(((each - found[few]).abs() <= allowed).all()) for each in variants)


def _score_in_batches(detector: object, outputs: Outputs, samples: Samples, size: int) -> Tensor:
    parts = []
    for first in range(0, len(samples.x), size):
        rows = slice(first, first + size)
        part = Samples(samples.x[rows], samples.y[rows])
        stored = {name: array[rows] for name, array in outputs.items()}
        parts.append(scores(detector, stored, part.batches(size)))
    return torch.cat(parts)
