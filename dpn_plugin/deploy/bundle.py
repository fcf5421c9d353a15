"""A bundle that is ready for use: images in, decisions out."""

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import torch
from torch import Tensor

from dpn_plugin import functional
from dpn_plugin.deploy.calibration import Calibration
from dpn_plugin.deploy.combine import BundledCombination
from dpn_plugin.deploy.images import Images, image_batches
from dpn_plugin.deploy.record import BundleRecord
from dpn_plugin.deploy.result import BundleResult, DetectorResult, joined
from dpn_plugin.deploy.scorer import BatchScorer

if TYPE_CHECKING:
    from dpn_plugin.deploy.monitor import BundleMonitor

BATCH = 256


class Bundle:
    """
    A trained run with fitted detectors and calibrated thresholds.

    Calls from several threads are safe.

    :param folder: where it is
    :param record: all of ``bundle.json``
    :param scorer: the networks and detectors
    :param calibrations: of the detectors, by name
    :param combinations: of some of the detectors
    """

    def __init__(
        self,
        folder: Path,
        record: BundleRecord,
        scorer: BatchScorer,
        calibrations: dict[str, Calibration],
        combinations: Sequence[BundledCombination] = (),
    ) -> None:
        self.folder, self.record = folder, record
        self.scorer, self.combinations = scorer, combinations
        of_combinations = {each.name: each.calibration for each in combinations}
        self.calibrations = calibrations | of_combinations

    def __repr__(self) -> str:
        config = self.record.run.config
        names = ", ".join(self.record.detectors)
        return f"Bundle({config.backbone!r}, {config.method!r}, {names}; {str(self.folder)!r})"

    @property
    def classes(self) -> tuple[str, ...]:
        """The names of the in-domain classes."""
        return tuple(self.record.run.classes)

    @property
    def input_shape(self) -> tuple[int, ...]:
        """The shape to which images are brought, C x H x W, or D for points."""
        return self.record.run.input_shape

    def __call__(self, images: Images, batch_size: int = BATCH) -> BundleResult:
        """
        Return predictions, measures, scores, p-values and decisions.

        :param images: an image or several: PIL images; ``uint8`` arrays H x W, H x W x C or
            N x H x W x C; ``uint8`` tensors C x H x W or N x C x H x W. They may have any size.
            Float tensors from 0 to 1, or points, must have :attr:`input_shape`.
        :param batch_size: images that the networks process at a time
        :raises UserError: if an image has another type or form
        """
        results = list(self.stream(images, batch_size))
        return joined(results or [self._of_batch(self.example_input(0))])

    def stream(self, images: Images, batch_size: int = BATCH) -> Iterator[BundleResult]:
        """
        Yield the results of one batch after the other.

        :param images: as for a call
        :param batch_size: images in a batch
        """
        for batch in image_batches(images, self.input_shape, batch_size):
            yield self._of_batch(batch)

    def monitor(
        self, detector: str | None = None, false_alarm: float = 0.01, seed: int = 0
    ) -> "BundleMonitor":
        """
        Return a monitor that raises an alarm when images are no longer like the calibration data.

        :param detector: whose scores it watches; the first one of the bundle if not given
        :param false_alarm: the probability that it ever raises an alarm on in-domain images
        :param seed: of the random ranks among equal scores
        """
        from dpn_plugin.deploy.monitor import BundleMonitor

        return BundleMonitor(self, detector, false_alarm, seed)

    def _of_batch(self, batch: Tensor) -> BundleResult:
        outputs, scores = self.scorer(batch)
        scores |= {each.name: each.scores(scores) for each in self.combinations}
        logits = outputs["logits"].double()
        predicted = logits.argmax(dim=1)
        measures = functional.dirichlet_measures(logits)
        if "mutual_information" in outputs:  # averages: probabilities without concentrations
            unknown = torch.full_like(measures.max_p, torch.nan)
            measures = functional.DirichletMeasures(
                measures.max_p,
                measures.entropy,
                outputs["mutual_information"].double(),
                *[unknown] * 3,
            )
        return BundleResult(
            tuple(self.classes[index] for index in predicted.tolist()),
            torch.softmax(logits, dim=1),
            measures,
            {name: self._decide(name, found, predicted) for name, found in scores.items()},
            self._sources(logits),
        )

    def _decide(self, name: str, scores: Tensor, predicted: Tensor) -> DetectorResult:
        calibration = self.calibrations[name]
        return DetectorResult(
            scores,
            calibration.p_values(scores, predicted),
            calibration.rejected(scores, predicted),
        )

    def _sources(self, logits: Tensor) -> Tensor | None:
        for each in self.scorer.detectors:
            if each.gives_sources:
                return each.detector.predict_source(logits)
        return None

    def example_input(self, rows: int = 1) -> Tensor:
        """
        Return inputs of the right shape and type, all zero.

        :param rows: how many
        """
        kind = torch.uint8 if len(self.input_shape) == 3 else torch.float32
        return torch.zeros((rows, *self.input_shape), dtype=kind)
