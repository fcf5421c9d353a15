"""The key of stored outputs, which holds everything that they depend on, and their record."""

import json
import re
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from typing import Annotated, Any

from pydantic import BaseModel, ConfigDict, Field

from dpn_plugin._records import Record, json_hash
from dpn_plugin.errors import UserTypeError

#: names of arrays become names of files, so none may lead out of the folder
ARRAY_NAME = re.compile(r"[a-z][a-z0-9_]{0,40}")
ArrayName = Annotated[str, Field(pattern=f"^{ARRAY_NAME.pattern}$")]


@dataclass(frozen=True)
class OutputKey:
    """
    Everything that decides what a model computes for a data set.

    If one part differs, so does the hash: outputs of other weights or another transform are never
    read by mistake.

    :param weights: hash of the model's weights
    :param data: fingerprint of the data set
    :param transform: description of what happens to an image before the model sees it
    :param split: name of the set, e.g. ``"test"``
    :param extra: what else matters, e.g. ``{"passes": 10}``; like the others, it must be JSON
    :raises UserTypeError: if a part cannot be written as JSON
    """

    weights: str
    data: str
    transform: Any
    split: str
    extra: Mapping[str, Any] = field(default_factory=dict)

    def __post_init__(self) -> None:
        try:
            json.dumps(asdict(self), allow_nan=False)
        except (TypeError, ValueError) as error:
            raise UserTypeError(f"The parts of an output key must be JSON: {error}.") from error

    @property
    def hash(self) -> str:
        """64 hexadecimal digits, the same on every machine; usable as the name of a folder."""
        return json_hash(asdict(self))


class ArrayRecord(BaseModel):
    """Shape, type and SHA-256 of one ``.npy`` file."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    shape: list[int]
    dtype: str
    sha256: str


class EntryRecord(Record):
    """All of ``entry.json``: the key of the outputs, and their arrays."""

    key: OutputKey
    arrays: dict[ArrayName, ArrayRecord]
