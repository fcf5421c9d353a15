"""The files of a bundle."""

from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from torch import Tensor

from dpn_plugin._files import check_folder, creating_folder, file_hash
from dpn_plugin._records import write_record
from dpn_plugin.backbones import WeightsFile
from dpn_plugin.deploy.calibration import Calibration
from dpn_plugin.deploy.keep import Kept
from dpn_plugin.deploy.record import (
    BASE_FILE,
    BUNDLE_FILE,
    CALIBRATION_FILE,
    FITTING_FILE,
    STATE_FILE,
    BundleRecord,
    DecisionRule,
    DetectorRecord,
    installed_versions,
)
from dpn_plugin.errors import UserError
from dpn_plugin.evaluation import BINARY, OWN_SCORE, detector_code
from dpn_plugin.runs import TrainedRun, load_base, read_weights, write_weights


@dataclass
class DetectorContent:
    """
    A calibrated detector.

    :param options: arguments of its class
    :param kept: its fit
    :param one_by_one: whether images are scored one by one
    :param calibration: its scores of calibration samples
    """

    options: dict[str, Any]
    kept: Kept
    one_by_one: bool
    calibration: Calibration


@dataclass
class BundleContent:
    """
    What a bundle holds besides the networks.

    :param rule: when images are rejected
    :param predictions: classes of the calibration samples
    :param detectors: by name
    :param fitting: training data that detectors are fitted to again
    """

    rule: DecisionRule
    predictions: Tensor
    detectors: dict[str, DetectorContent] = field(default_factory=dict)
    fitting: dict[str, Tensor] = field(default_factory=dict)


def write_bundle(out: Path, run: TrainedRun, content: BundleContent, *, replace: bool) -> Path:
    """
    Write a bundle, whole or not at all, and return its folder.

    :param out: the folder to create
    :param run: whose networks it holds
    :param content: all else
    :param replace: whether a bundle that is already there is replaced
    :raises UserError: if the folder holds something else, or a bundle that may not be replaced
    """
    if (out / BUNDLE_FILE).is_file() and not replace:
        raise UserError(f"{out} holds a bundle. Use another folder, or --force to replace it.")
    if not (out / BUNDLE_FILE).is_file():
        check_folder(out, "bundle")
    with creating_folder(out, replace=True) as folder:
        _write_networks(folder, run)
        _write_tensors(folder, content)
        files = {path.name: file_hash(path) for path in sorted(folder.iterdir())}
        write_record(folder / BUNDLE_FILE, _record(run, content, files))
    return out


def _write_networks(folder: Path, run: TrainedRun) -> None:
    """Write all that the networks consist of; for heads, also the frozen network below them."""
    for network in run.method.networks:
        file = f"{network.name}.safetensors"
        known = run.record.networks[network.name]
        write_weights(folder / file, read_weights(run.folder / file, known.sha256))
    if run.record.base:
        base = load_base(run.config, run.record.input_shape)
        write_weights(folder / BASE_FILE, base.backbone.model.state_dict())


def _write_tensors(folder: Path, content: BundleContent) -> None:
    scores = {
        f"scores.{name}": each.calibration.scores
        for name, each in content.detectors.items()
        if each.kept.kind != "members"  # its scores follow from theirs
    }
    write_weights(folder / CALIBRATION_FILE, {**scores, "predictions": content.predictions})
    state: dict[str, Tensor] = {}
    for each in content.detectors.values():
        state |= each.kept.tensors
    for name, tensors in ((STATE_FILE, state), (FITTING_FILE, content.fitting)):
        if tensors:
            write_weights(folder / name, tensors)


def _record(run: TrainedRun, content: BundleContent, files: dict[str, str]) -> BundleRecord:
    config = run.config
    if run.record.base:  # nothing outside of the bundle is read when it is loaded
        weights = WeightsFile(path=BASE_FILE, sha256=files[BASE_FILE])
        config = config.model_copy(update={"pretrained": False, "weights": weights})
    networks = {
        each.name: run.record.networks[each.name].model_copy(
            update={"sha256": files[f"{each.name}.safetensors"]}
        )
        for each in run.method.networks
    }
    return BundleRecord(
        run=run.record.model_copy(update={"config": config, "networks": networks}),
        rule=content.rule,
        detectors={name: _detector_record(name, each) for name, each in content.detectors.items()},
        calibration_samples=len(content.predictions),
        versions=installed_versions(),
        files=files,
    )


def _detector_record(name: str, content: DetectorContent) -> DetectorRecord:
    return DetectorRecord(
        options=content.options,
        kept=content.kept.kind,
        state=content.kept.state,
        one_by_one=content.one_by_one,
        thresholds=content.calibration.thresholds.tolist(),
        code="" if name in (BINARY, OWN_SCORE) else detector_code(name),
    )
