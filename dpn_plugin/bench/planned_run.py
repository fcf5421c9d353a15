"""One run of a benchmark: a backbone, a method, a seed."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from dpn_plugin._files import file_hash
from dpn_plugin._records import DamagedRecord
from dpn_plugin.evaluation import read_evaluation, scorer_names
from dpn_plugin.runs import (
    CHECKPOINTS,
    RunRecord,
    TrainConfig,
    describe_changes,
    method_of,
    read_run_record,
    training_code,
)


@dataclass(frozen=True)
class PlannedRun:
    """
    A run that is wanted: it is trained, then evaluated.

    :param method: what results and messages call the method, e.g. ``dpn-minus:lambda_out=0``
    :param config: what is trained
    :param folder: where
    :param shared: networks that an earlier run of the plan trains: their names, and its index
    :param trained: the folder of a run that was trained elsewhere and is only evaluated
    :param again: train it even if it is trained already
    """

    method: str
    config: TrainConfig
    folder: Path
    trained: Path | None = None
    again: bool = False
    shared: Mapping[str, int] = field(default_factory=dict)

    @property
    def title(self) -> str:
        """What messages call it."""
        return f"{self.config.backbone} {self.method} seed {self.config.seed}"

    def find_training_state(self) -> str:
        """Look into the folder and return what is left to train: train, go on or reuse."""
        if self.trained is not None:
            return "reuse"
        record = self._read_record()
        if self.again or (record is not None and record.code != training_code(self.config)):
            return "train"
        if record is not None and record.finished and self.find_damage() is None:
            return "reuse"
        started = (record is not None and record.networks) or self._has_checkpoints()
        return "go on" if started else "train"

    def find_missing(self, detectors: Sequence[str], tune: bool = False) -> list[str]:
        """Look into the folder and return the detectors that it is not evaluated with yet."""
        wanted = scorer_names(method_of(self.config), detectors)
        if self.find_training_state() != "reuse":
            return wanted
        record = read_evaluation(self.folder)
        return wanted if record is None else record.missing(wanted, tune)

    def find_damage(self) -> str | None:
        """Hash the trained files and return what is wrong with them, without a full stop."""
        folder = self.trained or self.folder
        try:
            record = read_run_record(folder)
        except DamagedRecord as error:
            return str(error).rstrip(".")
        for name, network in record.networks.items() if record else ():
            path = folder / f"{name}.safetensors"
            if not path.is_file() or file_hash(path) != network.sha256:
                return f"{path} is missing or damaged"
        return None

    def find_changes(self) -> str:
        """Return how another run that is in the folder differs from this one; empty if none."""
        record = None if self.trained else self._read_record()
        return "" if record is None else describe_changes(self.config, record.config)

    def _read_record(self) -> RunRecord | None:
        try:
            return read_run_record(self.trained or self.folder)
        except DamagedRecord:
            return None

    def _has_checkpoints(self) -> bool:
        return any((self.folder / CHECKPOINTS).glob("*/step-*"))
