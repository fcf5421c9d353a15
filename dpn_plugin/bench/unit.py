"""One run of a benchmark: a network, a method, a seed."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from dpn_plugin.bench.evaluation import EVALUATION, missing_detectors, read_evaluation
from dpn_plugin.errors import UserError
from dpn_plugin.files import file_hash
from dpn_plugin.training import TrainConfig
from dpn_plugin.training.config import differences
from dpn_plugin.training.record import CHECKPOINTS, RECORD, read_record
from dpn_plugin.training.run import method_of

__all__ = ["BINARY", "Unit"]

#: the score of a network that tells in-domain from OOD samples, in place of a detector
BINARY = "binary"


@dataclass(frozen=True)
class Unit:
    """
    It is trained, then evaluated.

    :param config: what is trained
    :param folder: where
    :param trained: where the run is that was trained elsewhere and is only evaluated
    """

    config: TrainConfig
    folder: Path
    trained: Path | None = None

    @property
    def key(self) -> dict[str, Any]:
        """The columns of ``results.csv`` that a unit fills."""
        config = self.config
        return {"backbone": config.backbone, "method": config.method, "seed": config.seed}

    @property
    def title(self) -> str:
        """What messages call it."""
        return f"{self.config.backbone} {self.config.method} seed {self.config.seed}"

    @property
    def training(self) -> str:
        """What is left to train: ``train``, ``go on`` or ``reuse``."""
        if self.trained is not None:
            return "reuse"
        record = self._record() or {}
        if record.get("finished") and self.damage is None:
            return "reuse"
        return "go on" if record.get("networks") or self._checkpoints() else "train"

    def scorers(self, detectors: Sequence[str]) -> list[str]:
        """:return: what the run is scored with: a second network of its own, or detectors"""
        return [BINARY] if method_of(self.config).detects_apart else list(detectors)

    def missing(self, detectors: Sequence[str], tuned: bool = False) -> list[str]:
        """:return: those that it is not evaluated with yet, as far as the files tell"""
        asked = self.scorers(detectors)
        if self.training != "reuse":
            return asked
        return missing_detectors(read_evaluation(self.folder / EVALUATION), asked, tuned)

    @property
    def damage(self) -> str | None:
        """What is wrong with the trained files, in a sentence without its full stop."""
        folder = self.trained or self.folder
        if not (folder / RECORD).exists():
            return None
        record = self._record()
        if record is None:
            return f"{folder / RECORD} is damaged"
        for name, known in record["networks"].items():
            path = folder / f"{name}.safetensors"
            if not path.is_file() or file_hash(path) != known["sha256"]:
                return f"{path} is missing or damaged"
        return None

    @property
    def changes(self) -> list[str]:
        """How another run that is in the folder differs from what is asked for."""
        record = None if self.trained else self._record()
        asked = self.config.model_dump(mode="json")
        return [] if record is None else differences(asked, record["config"])

    def _record(self) -> dict[str, Any] | None:
        try:
            return read_record(self.trained or self.folder) or None
        except UserError:
            return None

    def _checkpoints(self) -> bool:
        return any((self.folder / CHECKPOINTS).glob("*/step-*"))
