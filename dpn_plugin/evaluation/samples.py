"""The test images that a report shows: accepted OOD, rejected in-domain and misclassified ones."""

import base64
import io
import warnings
from collections.abc import Sequence

import numpy as np
import torch
from PIL import Image
from torch import Tensor

from dpn_plugin.detectors import GaussianKL, representation
from dpn_plugin.errors import UserError
from dpn_plugin.evaluation.held_out_figures import held_out_aurocs, measures_of
from dpn_plugin.evaluation.record import Identity
from dpn_plugin.evaluation.rows import is_correct
from dpn_plugin.evaluation.sample_record import SampleGroup, SamplesRecord, ShownSample, Sources
from dpn_plugin.evaluation.scorers import BINARY, Arrays, measure_scores
from dpn_plugin.functional import max_p
from dpn_plugin.outputs import RunOutputs, score_chunks

#: thumbnails of each kind and set
SHOWN = 6
#: the share of held-out in-domain samples that the threshold accepts
ACCEPTED = 0.95
#: pixels along a side; larger images are reduced
_LARGEST = 64
_OF_CLASSIFIERS = (BINARY, "dpn-maxp", "dpn-entropy")


def has_images(outputs: RunOutputs) -> bool:
    """Return whether the samples of a run are images, and not points."""
    return outputs.samples["in_domain_test"].inputs.ndim == 4


def choose_samples(
    outputs: RunOutputs, test_sets: Sequence[str], identity: Identity
) -> SamplesRecord:
    """
    Return the most telling test images of a run.

    The score is the measure with the largest AUROC on held-out data; without held-out outliers it
    is Max.P, and that of the OOD classifier where there is one. The threshold accepts 95 % of the
    held-out in-domain samples. No test data decides either of them.

    :param outputs: of the run, collected for the test sets and the held-out data
    :param test_sets: the OOD sets by ``group.name``
    :param identity: of the evaluation
    """
    try:
        return _Chooser(outputs).record(test_sets, identity)
    except (UserError, ValueError) as error:  # outputs that are not finite, of a failed training
        return SamplesRecord(identity=identity, reason=str(error))


def lowest(scores: Tensor, count: int) -> np.ndarray:
    """
    Return the positions of the lowest scores in ascending order, of equal scores the first ones.

    Unlike a sort, this takes linear time.

    :param scores: shape N
    :param count: how many; all if there are fewer
    """
    values = scores.numpy()
    if count < len(values):
        limit = np.partition(values, count)[count]
        below, ties = np.flatnonzero(values < limit), np.flatnonzero(values == limit)
        rows = np.sort(np.concatenate([below, ties[: count - len(below)]]))
    else:
        rows = np.arange(len(values))
    return rows[np.argsort(values[rows], kind="stable")]


def thumbnail(image: Tensor) -> str:
    """
    Return an image as PNG in base64, with at most 64 pixels along a side.

    :param image: ``uint8``, C x H x W; with other than three channels, the first one is shown
    """
    pixels = image.permute(1, 2, 0).numpy() if len(image) == 3 else image[0].numpy()
    picture = Image.fromarray(np.ascontiguousarray(pixels))
    picture.thumbnail((_LARGEST, _LARGEST), Image.Resampling.BOX)
    buffer = io.BytesIO()
    picture.save(buffer, format="png", optimize=True)
    return base64.b64encode(buffer.getvalue()).decode()


class _Chooser:
    """The scores, the threshold and the source probabilities of one run."""

    def __init__(self, outputs: RunOutputs) -> None:
        self.outputs, self.classes = outputs, outputs.run.record.classes
        self.measures = _measures(outputs)
        self.detector = self._choose_detector()
        held_out = self._scores("held_out")
        self.threshold = float(np.quantile(held_out.numpy(), ACCEPTED, method="higher"))
        self.sources, self.no_sources = _fit_sources(outputs)

    def record(self, test_sets: Sequence[str], identity: Identity) -> SamplesRecord:
        return SamplesRecord(
            identity=identity,
            detector=self.detector,
            threshold=self.threshold,
            no_sources=self.no_sources,
            groups=[*map(self._accepted, test_sets), *self._in_domain()],
        )

    def _choose_detector(self) -> str:
        if BINARY in self.measures or "held_out_outliers" not in self.outputs.held_out_names:
            return self.measures[0]
        parts = (self.outputs.arrays(name) for name in self.outputs.held_out_names)
        aurocs = held_out_aurocs(self.outputs.run.method, *parts)
        return max(aurocs, key=aurocs.__getitem__)

    def _accepted(self, set_name: str) -> SampleGroup:
        group, _, dataset = set_name.partition(".")
        scores = self._scores(set_name)
        count = int((scores <= self.threshold).sum())
        rows = lowest(scores, min(SHOWN, count))
        shown = self._show(set_name, rows)
        return SampleGroup(
            kind="accepted",
            group=group,
            dataset=dataset,
            count=count,
            total=len(scores),
            samples=shown,
        )

    def _in_domain(self) -> list[SampleGroup]:
        name = "in_domain_test"
        scores, total = self._scores(name), len(self.outputs.samples[name])
        wrong = torch.nonzero(~is_correct(self.outputs.arrays(name)))[:, 0]
        rejected = int((scores > self.threshold).sum())
        highest = lowest(-scores, min(SHOWN, rejected))
        confident = wrong.numpy()[lowest(scores[wrong], SHOWN)]
        chosen = {"rejected": (rejected, highest), "misclassified": (len(wrong), confident)}
        return [
            SampleGroup.model_validate(
                {"kind": kind, "count": count, "total": total, "samples": self._show(name, rows)}
            )
            for kind, (count, rows) in chosen.items()
        ]

    def _scores(self, set_name: str) -> Tensor:
        scores = measure_scores(self.outputs.arrays(set_name), self.detector)
        if not torch.isfinite(scores).all():
            raise UserError(f"{self.detector} gives scores of {set_name} that are not finite.")
        return scores

    def _show(self, set_name: str, rows: np.ndarray) -> list[ShownSample]:
        if not len(rows):
            return []
        arrays = {name: array[rows] for name, array in self.outputs.arrays(set_name).items()}
        logits, samples = torch.from_numpy(arrays["logits"]), self.outputs.samples[set_name]
        columns = {
            "index": rows.tolist(),
            "predicted": [self.classes[k] for k in logits.argmax(dim=1).tolist()],
            "actual": [self.classes[k] if k >= 0 else None for k in arrays["labels"].tolist()],
            "confidence": _rounded(max_p(logits.double())),
            "scores": self._all_scores(arrays),
            "sources": self._all_sources(logits),
            "png": [thumbnail(image) for image in samples.rows(torch.from_numpy(rows))],
        }
        cells = zip(*columns.values(), strict=True)
        return [ShownSample(**dict(zip(columns, row, strict=True))) for row in cells]

    def _all_scores(self, arrays: Arrays) -> list[dict[str, float]]:
        scores = [_rounded(measure_scores(arrays, name)) for name in self.measures]
        return [dict(zip(self.measures, row, strict=True)) for row in zip(*scores, strict=True)]

    def _all_sources(self, logits: Tensor) -> list[Sources | None]:
        if self.sources is None:
            return [None] * len(logits)
        rows = map(_rounded, self.sources.predict_source(logits))
        return [Sources(correct=c, misclassified=m, ood=o) for c, m, o in rows]


def _measures(outputs: RunOutputs) -> tuple[str, ...]:
    method = outputs.run.method
    return _OF_CLASSIFIERS if method.has_ood_classifier else measures_of(method)


def _fit_sources(outputs: RunOutputs) -> tuple[GaussianKL | None, str]:
    """Return the scorer that tells the sources apart, and why there is none or what it lacks."""
    method = outputs.run.method
    if method.averages or method.has_ood_classifier:
        return None, f"{method.name} gives no Dirichlet distribution that tells them apart."
    if "held_out_outliers" not in outputs.held_out_names:
        return None, f"{method.name} has no held-out outliers to fit them to."
    parts = [outputs.arrays(name) for name in outputs.held_out_names]
    points = torch.cat([score_chunks(representation, part["logits"]) for part in parts])
    correct = torch.cat([is_correct(part) for part in parts])
    ood = torch.from_numpy(np.concatenate([part["labels"] for part in parts]) < 0)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        try:
            detector = GaussianKL().fit_points(points, correct, ood)
        except ValueError as error:
            return None, str(error)
    return detector, " ".join(str(each.message) for each in caught)


def _rounded(values: Tensor) -> list[float]:
    return [float(f"{value:.6g}") for value in values.tolist()]
