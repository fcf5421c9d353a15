"""``search/BACKBONE/METHOD.json``: what was tried, what it gave, and what was chosen."""

import logging
from pathlib import Path
from typing import Literal

from pydantic import BaseModel, ConfigDict, Field

from dpn_plugin._records import DamagedRecord, Record, read_record
from dpn_plugin.bench.search.space import Space, Value

SEARCH_FOLDER = "search"

_log = logging.getLogger(__name__)


class TrialRecord(BaseModel):
    """
    One trial: a training and its figures on held-out data.

    :param values: the hyper-parameters; empty for the settings of the suite
    :param accuracy: on held-out in-domain samples
    :param auroc: held-out in-domain samples against held-out outliers, for methods that are trained
        with outliers
    :param measure: the measure that gave it, the best one
    :param reason: why it could not be trained
    :param seconds: what the training took
    """

    model_config = ConfigDict(extra="forbid", frozen=True)

    values: dict[str, Value]
    accuracy: float | None = None
    auroc: float | None = None
    measure: str | None = None
    reason: str | None = None
    seconds: float = 0.0


class Settings(BaseModel):
    """
    What is searched, and how; a search with other settings is another one.

    :param trials: the budget, the same for every method
    :param space: the ranges
    :param identity: the hash of the configuration of the first trial
    :param code: the code of plugins that decides the weights
    """

    model_config = ConfigDict(extra="forbid", frozen=True)

    trials: int
    sampler: Literal["random", "grid", "tpe"]
    seed: int
    tolerance: float
    space: Space
    identity: str
    code: dict[str, str]


class SearchRecord(Record):
    """
    All of the file.

    :param data: the hashes of the training data and of the held-out data; there is no other
    :param trials: those that are done; the first one has the settings of the suite
    :param finished: whether all are, or the grid has no more
    """

    backbone: str
    method: str
    settings: Settings
    data: dict[str, str] = Field(default_factory=dict)
    trials: list[TrialRecord] = Field(default_factory=list)
    finished: bool = False

    def value(self, trial: TrialRecord) -> float:
        """
        Return what the search maximises.

        For methods that are trained with outliers, it is the AUROC of held-out in-domain samples
        against held-out outliers. A trial whose accuracy is more than the tolerance below that of
        the first one ranks below all others, by its accuracy. For methods without outliers, it is
        the held-out accuracy.
        """
        if trial.accuracy is None:
            return -2.0
        if trial.auroc is None:
            return trial.accuracy
        least = (self.trials[0].accuracy or 0.0) - self.settings.tolerance
        return trial.auroc if trial.accuracy >= least else trial.accuracy - 1.0

    @property
    def chosen(self) -> TrialRecord:
        """The best trial, of equally good ones the first."""
        return max(self.trials, key=self.value)

    @property
    def objective(self) -> str:
        """What the search maximised, in words."""
        if self.trials and self.trials[0].auroc is None:
            return "held-out accuracy"
        points = f"{100 * self.settings.tolerance:g}"
        return (
            "AUROC on held-out outliers, with at most "
            f"{points} points less held-out accuracy than with the suite's settings"
        )


def search_path(out: Path, backbone: str, folder: str) -> Path:
    """Return the file of a search in the folder of a benchmark."""
    return out / SEARCH_FOLDER / backbone / f"{folder}.json"


def read_search(path: Path) -> SearchRecord | None:
    """
    Return the record of a search.

    :return: ``None`` if there is none, or if it is damaged, which is logged
    """
    try:
        return read_record(path, SearchRecord)
    except FileNotFoundError:
        return None
    except DamagedRecord as error:
        _log.warning("%s The search is done again.", error)
        return None


def read_searches(out: Path) -> list[SearchRecord]:
    """Return the finished searches in the folder of a benchmark."""
    found = (read_search(path) for path in sorted((out / SEARCH_FOLDER).glob("*/*.json")))
    return [each for each in found if each is not None and each.finished]
