"""``bundle.json``: what a bundle holds, and the check that it is what was written."""

import warnings
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Annotated, Literal

from pydantic import BaseModel, ConfigDict, Field, JsonValue

from dpn_plugin._files import file_hash
from dpn_plugin._records import DamagedRecord, Record, read_record
from dpn_plugin.errors import UserError
from dpn_plugin.runs import PACKAGES, RunRecord

BUNDLE_FILE = "bundle.json"
#: the frozen network below the heads of a bundle
BASE_FILE = "base.safetensors"
CALIBRATION_FILE = "calibration.safetensors"
STATE_FILE = "state.safetensors"
FITTING_FILE = "fitting.safetensors"

#: packages whose code decides scores; those that fit detectors come on top of those that train
BUNDLE_PACKAGES = (*PACKAGES, "scikit-learn", "scipy")

#: names of files and attributes come from the record, so none may lead out of folder or object
FileName = Annotated[str, Field(pattern=r"^[A-Za-z0-9_][A-Za-z0-9_.-]{0,100}$")]
Attribute = Annotated[str, Field(pattern=r"^_?[A-Za-z][A-Za-z0-9_]{0,60}$")]


class DecisionRule(BaseModel):
    """
    When an image is rejected.

    :param alpha: the share of in-domain images that may be rejected
    :param confidence: the probability with which this holds over the draw of calibration samples;
        without it, it holds on average
    :param by_class: whether it holds within every predicted class
    """

    model_config = ConfigDict(extra="forbid", frozen=True, allow_inf_nan=False)

    alpha: float = Field(0.05, gt=0, lt=1)
    confidence: float | None = Field(None, gt=0, lt=1)
    by_class: bool = False


class DetectorRecord(BaseModel):
    """
    A detector of a bundle.

    :param options: arguments of its class
    :param kept: how its fit is kept: not at all, as tensors, or as the data that it is fitted to
        again when the bundle is loaded; a combination follows from its members
    :param state: its attributes; tensors are in ``state.safetensors``
    :param one_by_one: whether its score depends on the batch, so that images are scored one by one
    :param thresholds: the score above which an image is rejected; with ``by_class`` one per class
    :param code: the identity of a plugin's code
    """

    model_config = ConfigDict(extra="forbid", frozen=True, allow_inf_nan=False)

    options: dict[Attribute, bool | int | float | str] = Field(default_factory=dict)
    kept: Literal["nothing", "state", "fitting data", "members"] = "nothing"
    state: dict[Attribute, JsonValue] = Field(default_factory=dict)
    one_by_one: bool = False
    thresholds: list[float] = Field(min_length=1)
    code: str = ""


class BundleRecord(Record):
    """
    All of ``bundle.json``.

    :param run: the run that was bundled, with classes, preprocessing and hashes of the weights
    :param rule: when an image is rejected
    :param detectors: by name, in the order in which they were asked for
    :param calibration_samples: how many samples the thresholds come from
    :param versions: of the packages that decide the scores
    :param files: SHA-256 of every other file of the bundle
    """

    run: RunRecord
    rule: DecisionRule
    detectors: dict[str, DetectorRecord] = Field(min_length=1)
    calibration_samples: int
    versions: dict[str, str]
    files: dict[FileName, str]


def read_bundle_record(folder: str | Path) -> BundleRecord:
    """
    Return the record of a bundle, after every file has been compared with its hash.

    :param folder: what ``dpn bundle`` wrote
    :raises UserError: if there is no bundle, or a file is missing, damaged or exchanged
    """
    folder = Path(folder)
    try:
        record = read_record(folder / BUNDLE_FILE, BundleRecord)
    except FileNotFoundError:
        raise UserError(f"{folder} holds no bundle: it has no {BUNDLE_FILE}.") from None
    except DamagedRecord as error:
        raise UserError(f"{folder} holds no usable bundle: {error}") from error
    if not record.run.finished:
        raise UserError(f"{folder / BUNDLE_FILE} is of a run that is not finished.")
    for name, sha256 in record.files.items():
        _verify(folder / name, sha256)
    return record


def installed_versions() -> dict[str, str]:
    """Return the versions of the packages that decide the scores."""
    return {name: version(name) for name in BUNDLE_PACKAGES}


def warn_about_versions(folder: Path, record: BundleRecord) -> None:
    """Warn if packages have other versions than when the bundle was made."""
    changed = []
    for name, before in record.versions.items():
        try:
            now = version(name)
        except PackageNotFoundError:
            now = "missing"
        if now != before:
            changed.append(f"{name} {before} (now {now})")
    if changed:
        warnings.warn(
            f"{folder} was made with {', '.join(changed)}: scores may differ from those that the "
            "thresholds were calibrated on. Make the bundle again to be safe."
        )


def _verify(path: Path, sha256: str) -> None:
    if not path.is_file():
        raise UserError(f"{path} is missing; copy the whole bundle, or make it again.")
    if file_hash(path) != sha256:
        raise UserError(
            f"{path} is not the file that {BUNDLE_FILE} records: it is damaged or was exchanged. "
            "Make the bundle again."
        )
