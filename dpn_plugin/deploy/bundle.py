"""A bundle that is ready for use: images in, decisions out."""

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import torch
from torch import Tensor

from dpn_plugin import functional
from dpn_plugin._distributed import Processes
from dpn_plugin.deploy.calibration import Calibration
from dpn_plugin.deploy.images import Images, image_batches
from dpn_plugin.deploy.keep import fit_again
from dpn_plugin.deploy.record import (
    BASE_FILE,
    CALIBRATION_FILE,
    FITTING_FILE,
    STATE_FILE,
    BundleRecord,
    read_bundle_record,
    warn_about_versions,
)
from dpn_plugin.deploy.result import BundleResult, DetectorResult, joined
from dpn_plugin.deploy.scorer import BatchScorer, BundledDetector
from dpn_plugin.deploy.state import restore_state
from dpn_plugin.errors import UserError
from dpn_plugin.runs import TrainedRun, read_tensors

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
    """

    def __init__(
        self,
        folder: Path,
        record: BundleRecord,
        scorer: BatchScorer,
        calibrations: dict[str, Calibration],
    ) -> None:
        self.folder, self.record = folder, record
        self.scorer, self.calibrations = scorer, calibrations

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


def load_bundle(path: str | Path, device: str = "auto") -> Bundle:
    """
    Load a bundle; every file is compared with its hash first.

    :param path: the folder that ``dpn bundle`` wrote
    :param device: ``"cpu"``, ``"cuda"``, ... or ``"auto"``
    :raises UserError: if a file is missing, damaged or exchanged
    """
    folder = Path(path)
    record = read_bundle_record(folder)
    warn_about_versions(folder, record)
    scorer = BatchScorer(_run_of(folder, record), Processes.join(device).device)
    scorer.detectors = _load_detectors(folder, record, scorer)
    bundle = Bundle(folder, record, scorer, _load_calibrations(folder, record))
    _try(bundle)
    return bundle


def _run_of(folder: Path, record: BundleRecord) -> TrainedRun:
    """Return the run of a bundle; a frozen network below its heads is in the bundle, too."""
    run = record.run
    if run.base and run.config.weights is not None:
        weights = run.config.weights.model_copy(update={"path": str(folder / BASE_FILE)})
        config = run.config.model_copy(update={"weights": weights})
        run = run.model_copy(update={"config": config})
    return TrainedRun(folder, run)


def _try(bundle: Bundle) -> None:
    """Score one image, because what a forged state does to a detector is not known before."""
    example = bundle.example_input()
    try:
        bundle(example)
    except Exception as error:  # hosts check nothing
        raise UserError(
            f"The detectors in {bundle.folder} cannot be used with what {STATE_FILE} and "
            f"{FITTING_FILE} hold: {error}"
        ) from error


def _load_detectors(
    folder: Path, record: BundleRecord, scorer: BatchScorer
) -> list[BundledDetector]:
    state = _tensors(folder, STATE_FILE, record)
    fitting = _tensors(folder, FITTING_FILE, record)
    loaded = []
    for name, known in record.detectors.items():
        bundled = BundledDetector(name, scorer.predictor, known.options)
        bundled.one_by_one = known.one_by_one
        if known.kept == "state":
            moved = {key: value.to(scorer.device) for key, value in state.items()}
            restore_state(bundled.detector, known.state, moved)
        elif known.kept == "fitting data":
            fit_again(bundled, fitting, scorer.run.transform, scorer.device)
        loaded.append(bundled)
    return loaded


def _load_calibrations(folder: Path, record: BundleRecord) -> dict[str, Calibration]:
    tensors = _tensors(folder, CALIBRATION_FILE, record)
    wanted = [f"scores.{name}" for name in record.detectors]
    _check_calibration(folder / CALIBRATION_FILE, tensors, [*wanted, "predictions"])
    found = {}
    for name, known in record.detectors.items():
        scores, classes = tensors[f"scores.{name}"], len(record.run.classes)
        found[name] = Calibration(scores, tensors["predictions"], record.rule, classes)
        found[name].check_thresholds(name, known.thresholds)
    return found


def _check_calibration(path: Path, tensors: dict[str, Tensor], wanted: Sequence[str]) -> None:
    missing = [name for name in wanted if name not in tensors]
    if missing:
        raise UserError(f"{path} lacks {', '.join(missing)}: the bundle is forged or damaged.")
    if len({len(tensors[name]) for name in wanted if tensors[name].ndim == 1}) != 1:
        raise UserError(f"{path} must hold one score per calibration sample.")


def _tensors(folder: Path, name: str, record: BundleRecord) -> dict[str, Tensor]:
    return read_tensors(folder / name) if name in record.files else {}
