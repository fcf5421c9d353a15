"""Loading a bundle: its files are verified, and its detectors are as they were when it was made."""

from collections.abc import Sequence
from pathlib import Path

from torch import Tensor

from dpn_plugin._distributed import Processes
from dpn_plugin.deploy.bundle import Bundle
from dpn_plugin.deploy.calibration import Calibration
from dpn_plugin.deploy.combine import BundledCombination
from dpn_plugin.deploy.keep import fit_again
from dpn_plugin.deploy.record import (
    BASE_FILE,
    CALIBRATION_FILE,
    FITTING_FILE,
    STATE_FILE,
    BundleRecord,
    DetectorRecord,
    read_bundle_record,
    warn_about_versions,
)
from dpn_plugin.deploy.scorer import BatchScorer, BundledDetector
from dpn_plugin.deploy.state import restore_state
from dpn_plugin.detectors import parse_combination
from dpn_plugin.errors import UserError
from dpn_plugin.runs import TrainedRun, read_tensors


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
    calibrations = _load_calibrations(folder, record)
    combinations = _load_combinations(record, calibrations)
    bundle = Bundle(folder, record, scorer, calibrations, combinations)
    for name, known in record.detectors.items():
        bundle.calibrations[name].check_thresholds(name, known.thresholds)
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
    for name, known in _single(record).items():
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
    wanted = [f"scores.{name}" for name in _single(record)]
    _check_calibration(folder / CALIBRATION_FILE, tensors, [*wanted, "predictions"])
    predictions, classes = tensors["predictions"], len(record.run.classes)
    return {
        name: Calibration(tensors[f"scores.{name}"], predictions, record.rule, classes)
        for name in _single(record)
    }


def _load_combinations(
    record: BundleRecord, calibrations: dict[str, Calibration]
) -> list[BundledCombination]:
    found = []
    for name in (name for name in record.detectors if name not in calibrations):
        combination = parse_combination(name)
        if combination is None or not calibrations.keys() >= {*combination.members}:
            raise UserError(f"The bundle lacks members of {name!r}: it is forged or damaged.")
        found.append(BundledCombination(combination, calibrations, len(record.run.classes)))
    return found


def _single(record: BundleRecord) -> dict[str, DetectorRecord]:
    """Return the detectors that are not combinations of others."""
    return {name: each for name, each in record.detectors.items() if each.kept != "members"}


def _check_calibration(path: Path, tensors: dict[str, Tensor], wanted: Sequence[str]) -> None:
    missing = [name for name in wanted if name not in tensors]
    if missing:
        raise UserError(f"{path} lacks {', '.join(missing)}: the bundle is forged or damaged.")
    if len({len(tensors[name]) for name in wanted if tensors[name].ndim == 1}) != 1:
        raise UserError(f"{path} must hold one score per calibration sample.")


def _tensors(folder: Path, name: str, record: BundleRecord) -> dict[str, Tensor]:
    return read_tensors(folder / name) if name in record.files else {}
