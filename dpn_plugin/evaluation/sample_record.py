"""``samples.json``: a few test images of one run with their scores, for the report."""

import logging
from pathlib import Path
from typing import Literal

from pydantic import BaseModel, ConfigDict, Field, FiniteFloat

from dpn_plugin._records import DamagedRecord, Record, read_record, write_record
from dpn_plugin.evaluation.record import Identity

SAMPLES_FILE = "samples.json"

_log = logging.getLogger(__name__)


class Sources(BaseModel):
    """The probabilities of the three sources that a sample may come from."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    correct: float = Field(ge=0, le=1)
    misclassified: float = Field(ge=0, le=1)
    ood: float = Field(ge=0, le=1)


class ShownSample(BaseModel):
    """
    One image with everything that the report says about it.

    :param index: its position in the test set
    :param predicted: the name of the predicted class
    :param actual: the name of its class; ``None`` for OOD samples
    :param confidence: Max.P, the probability of the predicted class
    :param scores: outlier scores by the name of the detector
    :param sources: where it may come from, if that can be estimated
    :param png: a thumbnail of the image, as PNG in base64
    """

    model_config = ConfigDict(extra="forbid", frozen=True)

    index: int
    predicted: str
    actual: str | None = None
    confidence: FiniteFloat
    scores: dict[str, FiniteFloat]
    sources: Sources | None = None
    png: str = Field(pattern="^[A-Za-z0-9+/]+={0,2}$")


class SampleGroup(BaseModel):
    """
    Test samples of one set that were treated in one way.

    :param kind: OOD samples that are ``accepted``, or in-domain samples that are ``rejected`` or
        ``misclassified``
    :param group: ``near`` or ``far``; empty for in-domain samples
    :param dataset: the name of the OOD set; empty for in-domain samples
    :param count: how many samples of the set were treated in this way
    :param total: the number of samples of the set
    :param samples: the most extreme of them, in order
    """

    model_config = ConfigDict(extra="forbid", frozen=True)

    kind: Literal["accepted", "rejected", "misclassified"]
    group: str = ""
    dataset: str = ""
    count: int
    total: int
    samples: list[ShownSample]


class SamplesRecord(Record):
    """
    All of ``samples.json``.

    :param identity: everything that decides its content
    :param detector: the score that samples are accepted or rejected by
    :param threshold: samples with a larger score are rejected
    :param no_sources: why there are no source probabilities, or what they leave out
    :param reason: why there are no samples at all
    """

    identity: Identity
    detector: str = ""
    threshold: FiniteFloat = 0.0
    no_sources: str = ""
    groups: list[SampleGroup] = Field(default_factory=list)
    reason: str | None = None


def read_samples(folder: str | Path) -> SamplesRecord | None:
    """
    Return the samples in a run's folder; ``None`` if there are none, as for points in the plane.

    :raises DamagedRecord: if the file is not what was written
    """
    try:
        return read_record(Path(folder) / SAMPLES_FILE, SamplesRecord)
    except FileNotFoundError:
        return None


def has_samples(folder: Path, identity: Identity) -> bool:
    """Return whether the folder has the samples of these outputs, undamaged."""
    try:
        record = read_samples(folder)
    except DamagedRecord as error:
        _log.warning("%s It is written again.", error)
        return False
    return record is not None and record.identity == identity


def write_samples(folder: Path, record: SamplesRecord) -> None:
    """Write ``samples.json`` into a run's folder."""
    write_record(folder / SAMPLES_FILE, record)
