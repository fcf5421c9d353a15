"""``run.json``: what a run folder holds, how it was made, and whether it can be continued."""

import os
from pathlib import Path
from typing import Annotated, Self

from pydantic import BaseModel, ConfigDict, Field, model_validator

from dpn_plugin._records import Record, read_record, write_record
from dpn_plugin.data import Transform
from dpn_plugin.runs.config import LARGEST_IMAGE, TrainConfig

RUN_FILE = "run.json"
CHECKPOINTS = "checkpoints"
#: the packages whose versions are recorded
PACKAGES = ("dpn-plugin", "torch", "torchvision", "timm", "pytorch-ood", "numpy", "safetensors")

#: keys of a record become names of files, so none may lead out of the folder
FileName = Annotated[str, Field(pattern=r"^[A-Za-z0-9_][A-Za-z0-9_.-]{0,100}$")]
Length = Annotated[int, Field(ge=1, le=LARGEST_IMAGE)]


class EpochRecord(BaseModel):
    """One epoch of training: means over its steps, and the held-out data after it."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    epoch: int
    lr: float
    loss: float
    loss_in: float
    loss_out: float
    accuracy: float
    held_out_loss: float
    held_out_accuracy: float
    seconds: float
    images_per_second: float


class NetworkRecord(BaseModel):
    """
    A trained network, or one that is used as it was given.

    :param sha256: of its weights file
    :param identity: the hash of everything that decided the weights, see ``network_identity``
    :param shared_from: the run whose network this is a copy of; empty if it was trained here
    :param seconds: how long the training took; 0 for a copy
    :param history: its epochs; none if it is used as it was given
    """

    model_config = ConfigDict(extra="forbid", frozen=True)

    sha256: str
    identity: str
    shared_from: str = ""
    seconds: float
    history: list[EpochRecord]

    @property
    def selected(self) -> EpochRecord | None:
        """The epoch with the lowest held-out loss, whose weights were kept, if there is any."""
        return min(self.history, key=lambda epoch: epoch.held_out_loss, default=None)


class RunRecord(Record):
    """
    All of ``run.json``.

    :param config: what is trained
    :param versions: of the packages that decide the weights
    :param code: the code of plugins that decides the weights, see ``training_code``
    :param device: where it was trained
    :param processes: how many processes trained it
    :param classes: names of the in-domain classes
    :param input_shape: of one sample, C x H x W or D
    :param samples: number of samples of every part of the data
    :param data: fingerprint of every part of the data
    :param transform: what brings a batch to the networks
    :param base: the hash of the frozen weights below the trained heads; empty if nothing is frozen
    :param networks: the networks that are trained, by name
    :param files: SHA-256 of the other files in the folder
    :param finished: whether all networks are trained
    """

    config: TrainConfig
    versions: dict[str, str]
    code: dict[str, str] = Field(default_factory=dict)
    device: str
    processes: int
    classes: list[str] = Field(default_factory=list)
    input_shape: tuple[Length, ...] = Field((), max_length=3)
    samples: dict[str, int] = Field(default_factory=dict)
    data: dict[str, str] = Field(default_factory=dict)
    transform: Transform | None = None
    base: str = ""
    networks: dict[FileName, NetworkRecord] = Field(default_factory=dict)
    files: dict[FileName, str] = Field(default_factory=dict)
    finished: bool = False

    @model_validator(mode="after")
    def _is_complete(self) -> Self:
        if self.finished and not (self.classes and self.input_shape and self.transform):
            raise ValueError("a finished run needs classes, input_shape and transform")
        if self.transform and max(self.transform.size or (1,)) > LARGEST_IMAGE:
            raise ValueError(f"images have at most {LARGEST_IMAGE} pixels along a side")
        return self


def write_run_record(folder: Path, record: RunRecord) -> None:
    """Write ``run.json``."""
    write_record(folder / RUN_FILE, record)


def read_run_record(folder: str | Path) -> RunRecord | None:
    """
    Return the record of the folder, or ``None`` if there is none.

    :raises DamagedRecord: if it is damaged
    """
    if not os.path.isdir(folder):  # os.path does not raise for names that the system does not allow
        return None
    try:
        return read_record(Path(folder) / RUN_FILE, RunRecord)
    except FileNotFoundError:
        return None
