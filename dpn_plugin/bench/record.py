"""``bench.json``: what a benchmark consists of and how it was made."""

from pathlib import Path
from typing import Literal

from pydantic import BaseModel, ConfigDict, Field

from dpn_plugin._records import DamagedRecord, NewerFormat, Record, read_record, write_record
from dpn_plugin.errors import UserError

BENCH_FILE = "bench.json"


class DataRecord(BaseModel):
    """
    A data set of the benchmark.

    :param source: where it came from, e.g. ``"torchvision:MNIST (test)"``
    :param selection: the part that was taken, e.g. ``"classes=0-6, limit=300"``; empty for all
    :param samples: the number of samples
    :param dropped: how many more there were, which are also in other data (``overlap = "drop"``)
    :param damaged: how many more files there were, which cannot be read (``skip_damaged = true``)
    :param classes: the names of its classes, for in-domain data
    """

    model_config = ConfigDict(extra="forbid", frozen=True)

    source: str
    selection: str = ""
    samples: int
    dropped: int = 0
    damaged: int = 0
    classes: list[str] = []


class NotRun(BaseModel):
    """Something without figures, and why; a field that is ``None`` stands for all of its kind."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    backbone: str | None = None
    method: str | None = None
    seed: int | None = None
    detector: str | None = None
    dataset: str | None = None
    reason: str


class BenchRecord(Record):
    """
    All of ``bench.json``.

    :param in_domain: the in-domain data for training and selection
    :param outliers: the OOD data for training and selection, by name
    :param sets: the OOD test sets by group (``near``, ``far``) and name
    :param shift: the test sets of in-domain classes under changed conditions, by name
    :param paper_task: the paper's name of the task, for its suites
    :param fingerprints: the hash of every test set
    :param epochs: of training
    :param suite_epochs: those that the suite defines
    :param limit: the largest number of samples of every set that was asked for
    :param calibration_samples: in-domain and OOD samples of a calibration error, at most
    :param code: the code of plugins behind the figures, by kind and name
    :param command: the command that started the benchmark
    :param seconds: what training and evaluation took, summed over all sessions
    :param warnings: what a reader of the results must know
    :param not_run: what has no figures
    """

    suite: str
    title: str
    backbones: list[str]
    methods: list[str]
    detectors: list[str]
    seeds: list[int]
    in_domain: DataRecord
    in_domain_test: DataRecord
    outliers: dict[str, DataRecord]
    sets: dict[str, dict[str, DataRecord]]
    shift: dict[str, DataRecord] = Field(default_factory=dict)
    paper_task: Literal["C10", "C100", "TIM"] | None = None
    fingerprints: dict[str, str]
    epochs: int
    suite_epochs: int
    limit: int | None
    calibration_samples: int | None = None
    versions: dict[str, str]
    code: dict[str, str]
    command: str
    device: str
    started: str
    seconds: float
    warnings: list[str]
    not_run: list[NotRun]

    def set_names(self, group: str) -> list[str]:
        """Return the names of the OOD sets of ``"near"`` or ``"far"``."""
        return list(self.sets.get(group, {}))


def read_bench_record(folder: str | Path) -> BenchRecord:
    """
    Return the record of a benchmark.

    :param folder: a folder that ``dpn bench`` wrote
    :raises UserError: if there is no record, it is damaged, or of another format
    """
    try:
        return read_record(Path(folder) / BENCH_FILE, BenchRecord)
    except FileNotFoundError:
        raise UserError(f"{folder} holds no benchmark: it has no {BENCH_FILE}.") from None
    except NewerFormat:
        raise
    except DamagedRecord as error:
        raise DamagedRecord(f"{error} Run the same dpn bench again.") from error


def write_bench_record(folder: Path, record: BenchRecord) -> None:
    """Write ``bench.json``, unless it differs only in the command and the time of its start."""
    try:
        known = read_record(folder / BENCH_FILE, BenchRecord)
    except (FileNotFoundError, DamagedRecord):
        known = None
    update = {"command": record.command, "started": record.started}
    if known is None or known.model_copy(update=update) != record:
        write_record(folder / BENCH_FILE, record)
