"""
Time all detectors of one network, each alone and together.

    python -m benchmark_suites.speed.detectors          # 900 training and 1,300 test images
    python -m benchmark_suites.speed.detectors --full   # 9,000 and 13,000

fits every detector to training images and scores test images of 32 pixels on one thread: those
that read images one after the other as pytorch-ood runs them, and then as ``dpn bench`` does, with
shared passes. Those that read stored outputs run once and count on both sides. It prints the
seconds of each, and what of the second way is ours (wiring, metrics, records). It exits with 1 if a
bit of a score differs, if together takes more than half of the time, or with ``--full`` if our
part, most of which does not grow with the images, is above 5 %.
"""

import argparse
import sys
import tempfile
import time
from collections.abc import Callable, Iterable, Iterator
from functools import partial
from pathlib import Path
from typing import Any

import torch
from pytorch_ood.api import Detector, GradientDetector
from pytorch_ood.detector import MultiMahalanobis
from torch import Tensor

from dpn_plugin.backbones import Backbone, create_backbone
from dpn_plugin.detectors import (
    Together,
    create_detector,
    find_detectors,
    fit,
    fits_on,
    preserved_state,
    reads,
    scores,
)
from dpn_plugin.detectors.stored.host_workarounds import fit_layers
from dpn_plugin.detectors.stored.inputs import Loader
from dpn_plugin.errors import UserError
from dpn_plugin.evaluation import DetectorEvaluation, EvaluationRecord, OutputKeys
from dpn_plugin.evaluation.record import Identity, write_evaluation
from dpn_plugin.evaluation.rows import detector_rows

CLASSES, SIZE, BATCH, TRAIN, TEST = 10, 32, 256, 9000, 13000
Scores = dict[str, dict[str, Tensor]]


class Images:
    """
    Noise of three kinds, to fit to and to score, with what a network computes for it.

    :param backbone: the network
    :param share: of the full number of images
    """

    def __init__(self, backbone: Backbone, share: float) -> None:
        generator = torch.Generator().manual_seed(0)
        counts = {"train": (TRAIN, 1.0), "inside": (TEST // 2, 1.0), "far.noise": (TEST // 2, 1.5)}
        self.inputs, self.labels, self.arrays = {}, {}, {}
        for name, (count, scale) in counts.items():
            shape = int(count * share), 3, SIZE, SIZE
            self.inputs[name] = torch.randn(shape, generator=generator) * scale
            self.labels[name] = torch.arange(shape[0]) % CLASSES
            with torch.inference_mode():
                found = [backbone.outputs(x) for x, _ in self.batches(name)()]
            self.arrays[name] = {
                "logits": torch.cat([each.logits for each in found]).numpy(),
                "features": torch.cat([each.features for each in found]).numpy(),
                "labels": self.labels[name].numpy(),
            }
        self.tests = ("inside", "far.noise")

    def batches(self, name: str) -> Callable[[], Iterator[tuple[Tensor, Tensor]]]:
        """Return a function that gives a set batch by batch."""
        return lambda: zip(
            self.inputs[name].split(BATCH), self.labels[name].split(BATCH), strict=True
        )


class Clock:
    """Seconds of processor time by name."""

    def __init__(self) -> None:
        self.seconds: dict[str, float] = {}

    def timed(self, name: str, work: Callable[[], Any]) -> Any:
        """Return the result of the work and add its time to the name's."""
        start = time.process_time()
        try:
            return work()
        finally:
            spent = time.process_time() - start
            self.seconds[name] = self.seconds.get(name, 0.0) + spent

    @property
    def total(self) -> float:
        """All seconds."""
        return sum(self.seconds.values())


def from_stored(detector: Detector, images: Images) -> dict[str, Tensor]:
    """Return the scores of a detector that reads stored outputs."""
    fit(detector, images.arrays["train"], images.batches("train"))
    return {name: scores(detector, images.arrays[name], None) for name in images.tests}  # type: ignore[arg-type]


def as_host(detector: Detector, model: Backbone, images: Images) -> dict[str, Tensor]:
    """Return the scores of a detector that reads images, as pytorch-ood computes them."""
    with preserved_state([model]):
        if isinstance(detector, MultiMahalanobis):
            fit_layers(detector, Loader(images.batches("train")))
        elif detector.requires_fit and fits_on(detector) == "inputs":
            detector.fit(Loader(images.batches("train")))
    if fits_on(detector) != "inputs":
        fit(detector, images.arrays["train"], images.batches("train"))
    found = {}
    for name in images.tests:
        gradients = isinstance(detector, GradientDetector)
        with preserved_state([model]), torch.set_grad_enabled(gradients):
            parts = [detector.predict(x).detach() for x, _ in images.batches(name)()]
        found[name] = torch.cat(parts)
    return found


def as_benchmark(detectors: dict[str, Detector], images: Images, clock: Clock) -> Scores:
    """Return the scores of detectors that read images, as an evaluation computes them."""
    together = Together(detectors)
    of_inputs = [name for name, each in detectors.items() if fits_on(each) == "inputs"]
    start = time.process_time()
    for name in set(detectors) - set(of_inputs):
        fit(detectors[name], images.arrays["train"], images.batches("train"))
    fitted = [name for name in of_inputs if detectors[name].requires_fit]
    together.fit(fitted, images.batches("train"))
    by_set = {name: together.score(images.batches(name)) for name in images.tests}
    spent = time.process_time() - start
    if together.failures:
        raise RuntimeError(together.failures)
    own = {name: together.seconds(name) for name in detectors}
    for name in detectors:  # wall-clock shares of the processor time
        clock.seconds[name] = spent * own[name] / sum(own.values())
    return {name: {each: by_set[each][name] for each in images.tests} for name in detectors}


def created(
    names: Iterable[str], model: Backbone, clock: Clock, silent: bool = False
) -> dict[str, Detector]:
    """Return the detectors that apply to a network."""
    found = {}
    for name in names:
        try:
            found[name] = clock.timed("wiring", partial(create_detector, name, model))
        except UserError as reason:
            if not silent:
                print(f"{name:20s} {reason}")
    return found


def written(found: Scores, images: Images, folder: Path) -> None:
    """Compute the figures of every detector and write the record after each, as is done always."""
    record = EvaluationRecord(
        identity=Identity(outputs={}, versions={}),
        backbone="", method="", seed=0, data={}, code={}, general=[], warnings=[],
        outputs=OutputKeys(in_domain_test="0" * 64), training_seconds=0.0, seconds=0.0,
    )  # fmt: skip
    for name, each in found.items():
        inside, outside = each["inside"], {"far.noise": each["far.noise"]}
        rows = detector_rows(name, inside, outside, images.arrays["inside"])
        record.detectors[name] = DetectorEvaluation(rows=rows)
        write_evaluation(folder, record)


def main() -> int:
    """Return the exit code: 1 if scores differ or a limit is exceeded."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--full", action="store_true", help="all 22,000 images")
    parser.add_argument("--backbone", default="resnet18")
    parser.add_argument("--stem", default="default")
    parser.add_argument("--detectors", default="all")
    parser.add_argument("--most", type=float, default=0.5, help="of the time alone")
    options = parser.parse_args()
    torch.set_num_threads(1)
    torch.manual_seed(0)
    model = create_backbone(options.backbone, CLASSES, image_size=SIZE, stem=options.stem).eval()
    images = Images(model, 1.0 if options.full else 0.1)
    names = find_detectors(options.detectors.split(","))
    alone, ours, wiring = Clock(), Clock(), Clock()
    stored, reference = {}, {}
    created(names, model, Clock(), silent=True)  # imports of hosts are not ours
    detectors = created(names, model, wiring)
    of_images = {n: each for n, each in detectors.items() if reads(each) == "inputs"}
    for name, each in detectors.items():
        try:
            if name not in of_images:
                stored[name] = alone.timed(name, partial(from_stored, each, images))
        except UserError as reason:
            print(f"{name:20s} {reason}")
    ours.seconds |= alone.seconds
    for name in of_images:
        each = create_detector(name, model)
        reference[name] = alone.timed(name, partial(as_host, each, model, images))
    found = as_benchmark(of_images, images, ours)
    with tempfile.TemporaryDirectory() as folder:
        wiring.timed("records", lambda: written({**stored, **found}, images, Path(folder)))
    limits = options.most, 0.05 if options.full else 1.0
    return reported(alone, ours, wiring, reference, found, limits)


def reported(
    alone: Clock,
    ours: Clock,
    wiring: Clock,
    reference: Scores,
    found: Scores,
    limits: tuple[float, float],
) -> int:
    """Print the seconds and return the exit code."""
    print(f"{'detector':20s} {'alone':>8s} {'together':>8s}")
    for name, seconds in sorted(alone.seconds.items(), key=lambda each: -each[1]):
        if seconds >= 0.05:
            print(f"{name:20s} {seconds:8.2f} {ours.seconds[name]:8.2f}")
    same = all(torch.equal(found[n][s], reference[n][s]) for n in reference for s in reference[n])
    total = ours.total + wiring.total
    share, overhead = total / (alone.total + wiring.total), wiring.total / total
    print(
        f"{'all':20s} {alone.total + wiring.total:8.2f} {total:8.2f}  {1 / share:.1f} times faster"
    )
    print(f"wiring, metrics and records {wiring.total:.2f} s, {overhead:.1%}")
    print(f"scores of {len(reference)} detectors that read images are " + ("equal" * same or "NOT"))
    return int(not same or share > limits[0] or overhead > limits[1])


if __name__ == "__main__":
    sys.exit(main())
