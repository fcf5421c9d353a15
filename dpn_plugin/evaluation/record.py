"""``evaluation.json``: all figures of one trained run."""

import json
import logging
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from pydantic import BaseModel, ConfigDict, Field, field_validator

from dpn_plugin._records import DamagedRecord, Record, read_record, write_record
from dpn_plugin.detectors import parse_combination
from dpn_plugin.plugins import code_identity

EVALUATION_FILE = "evaluation.json"

_log = logging.getLogger(__name__)


class ResultRow(BaseModel):
    """One figure: the columns of ``results.csv`` that an evaluation fills."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    task: str
    detector: str = ""
    dataset: str = ""
    metric: str
    value: float


class DetectorEvaluation(BaseModel):
    """
    The figures of one detector.

    :param rows: its figures
    :param scores: the key of its stored scores of all test sets, see ``write_scores``
    :param reason: why there are none
    :param failed: whether an unexpected error is the reason; it is then tried again
    :param code: the code of a plugin's detector, see ``code_identity``
    :param tuned: whether hyper-parameters were searched on held-out data
    :param hyperparameters: those that were chosen
    :param warnings: messages during the evaluation
    :param seconds: how long it took
    :param peak_memory: bytes above those in use before, where the system reports them
    """

    # hyper-parameters are assigned after the fit and must be converted then
    model_config = ConfigDict(extra="forbid", validate_assignment=True)

    rows: list[ResultRow] = []
    scores: str | None = None
    reason: str | None = None
    failed: bool = False
    code: str = ""
    tuned: bool = False
    hyperparameters: dict[str, Any] = {}
    warnings: list[str] = []
    seconds: float = 0.0
    peak_memory: int | None = None

    @field_validator("hyperparameters")
    @classmethod
    def _as_json(cls, value: dict[str, Any]) -> Any:
        # those of a plugin's detector may be of any type
        return json.loads(json.dumps(value, default=str))


class OutputKeys(BaseModel):
    """
    Where the outputs of the run are stored.

    :param in_domain_test: key of the in-domain test samples
    :param calibration: key of the calibration samples, if there are any
    :param near: keys of the near OOD sets by name
    :param far: keys of the far OOD sets by name
    :param shift: keys of the shifted sets by name
    :param plane: keys of ``grid`` and ``points``, for samples that are points in the plane
    """

    model_config = ConfigDict(extra="forbid", frozen=True)

    in_domain_test: str
    calibration: str | None = None
    near: dict[str, str] = {}
    far: dict[str, str] = {}
    shift: dict[str, str] = {}
    plane: dict[str, str] = {}


class Identity(BaseModel):
    """
    Everything that decides the figures of an evaluation.

    :param outputs: the keys of all outputs, which hash weights, data and transforms
    :param versions: the versions of the code
    :param calibration_samples: in-domain and OOD samples of a calibration error, at most
    :param fit_samples: training and held-out samples that detectors are fitted to, at most
    """

    model_config = ConfigDict(extra="forbid", frozen=True)

    outputs: dict[str, str]
    versions: dict[str, str]
    calibration_samples: int | None = None
    fit_samples: int | None = None


class EvaluationRecord(Record):
    """
    All of ``evaluation.json``.

    :param identity: everything that decides the figures
    :param data: the hash of every test set
    :param code: the code of plugins that decided the weights
    :param outputs: where the outputs for the test sets are stored
    :param samples: the number of in-domain test samples, of calibration samples, and of the
        training and held-out samples that detectors are fitted to
    :param general: figures that need no detector
    :param training_seconds: how long the training took
    :param seconds: how long the general figures took
    :param detectors: the figures of every detector by name
    """

    identity: Identity
    backbone: str
    method: str
    seed: int
    data: dict[str, str]
    code: dict[str, str]
    outputs: OutputKeys
    samples: dict[str, int] = Field(default_factory=dict)
    general: list[ResultRow]
    warnings: list[str]
    training_seconds: float
    seconds: float
    detectors: dict[str, DetectorEvaluation] = Field(default_factory=dict)

    @property
    def title(self) -> str:
        """What messages call the run."""
        return f"{self.backbone} {self.method} seed {self.seed}"

    def all_rows(self) -> Iterable[ResultRow]:
        """Return the general figures and those of all detectors."""
        yield from self.general
        for detector in self.detectors.values():
            yield from detector.rows

    def select(self, names: Iterable[str]) -> "EvaluationRecord":
        """Return the record with these detectors only, in this order."""
        detectors = {name: self.detectors[name] for name in names if name in self.detectors}
        return self.model_copy(update={"detectors": detectors})

    def missing(self, names: Iterable[str], tune: bool) -> list[str]:
        """
        Return the detectors that are still to be evaluated.

        :param names: the wanted ones
        :param tune: whether hyper-parameters must have been searched
        """
        known = self.detectors
        return [
            name
            for name in names
            if name not in known
            or known[name].failed
            or known[name].tuned != tune
            or known[name].code != detector_code(name)
        ]


def detector_code(name: str) -> str:
    """Return the identity of a plugin's detector; empty if the recorded versions identify it."""
    combination = parse_combination(name)
    if combination is None:
        return code_identity("detectors", name)
    return " ".join(filter(None, (code_identity("detectors", m) for m in combination.members)))


def read_evaluation(folder: str | Path) -> EvaluationRecord | None:
    """
    Return the evaluation in a run's folder.

    :return: ``None`` if there is none, or if it is damaged, which is logged
    """
    path = Path(folder) / EVALUATION_FILE
    try:
        return read_record(path, EvaluationRecord)
    except FileNotFoundError:
        return None
    except DamagedRecord as error:
        _log.warning("%s The run is evaluated again.", error)
        return None


def write_evaluation(folder: Path, record: EvaluationRecord) -> None:
    """Write ``evaluation.json`` into a run's folder."""
    write_record(folder / EVALUATION_FILE, record)
