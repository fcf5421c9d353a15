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

#: cells whose scores depend on the batch, and why; a detector, or a detector on a backbone
UNSTEADY = {
    "mcd": "every batch draws its own dropout masks",
    "gram on test_convnext": "sums over channels behind a layer norm are zero but for rounding,"
    " and that is what gets compared",
}

#: how far scores may move with the batch, as a share of their deviation and of their size
TOLERANCE, ROUNDING = 1e-2, 2e-6


@dataclass(frozen=True)
class Cell:
    """
    :param detector: its name
    :param backbone: its name
    :param reason: why there are no scores; the rest is empty then
    :param failed: whether the reason was found only when it ran
    :param auroc: of digits against noise
    :param steady: whether scores are the same for any batching
    :param reads: what is scored
    :param seconds: to fit and to score
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
    :param name: of a detector
    :param subject: what it is fitted and tested on
    :param batch: samples that a detector of inputs sees at once
    """
    backbone = subject.backbone.name
    try:
        detector = dpn_plugin.create_detector(name, subject.backbone)
    except NotApplicable as reason:
        return Cell(name, backbone, reason=str(reason))
    begun = time.monotonic()
    try:
        fit(detector, subject.fit_outputs, subject.fit.batches(batch))
        found = scores(detector, subject.test_outputs, subject.test.batches(batch))
    except UserError as reason:
        return Cell(name, backbone, reason=str(reason), failed=True)
    seconds = time.monotonic() - begun
    auroc = roc_auc_score(subject.test_outputs["labels"] < 0, found)
    steady = _is_steady(detector, subject, found)
    return Cell(name, backbone, "", False, auroc, steady, reads(detector), seconds)


def reason_for_unsteadiness(cell: Cell) -> str | None:
    """:return: the known reason why scores depend on the batch, if there is one"""
    return UNSTEADY.get(cell.detector) or UNSTEADY.get(f"{cell.detector} on {cell.backbone}")


def _is_steady(detector: object, subject: Subject, found: Tensor) -> bool:
    """Compare a few digits and a few images of noise, alone, by eights and together."""
    few = torch.cat([torch.arange(8), len(found) - 1 - torch.arange(8)])
    samples = Samples(subject.test.x[few], subject.test.y[few])
    outputs = {name: array[few.numpy()] for name, array in subject.test_outputs.items()}
    allowed = TOLERANCE * found.std() + ROUNDING * found.abs().max()
    ways = [_in_batches(detector, outputs, samples, size) for size in (1, 8, len(few))]
    return all(bool(((way - found[few]).abs() <= allowed).all()) for way in ways)


def _in_batches(detector: object, outputs: Outputs, samples: Samples, size: int) -> Tensor:
    parts = []
    for start in range(0, len(samples.x), size):
        here = slice(start, start + size)
        part = Samples(samples.x[here], samples.y[here])
        rows = {name: array[here] for name, array in outputs.items()}
        parts.append(scores(detector, rows, part.batches(size)))
    return torch.cat(parts)
