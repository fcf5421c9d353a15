"""The shape of ``run.json``: what others may have written is checked before it is used."""

from typing import Annotated, Any

from pydantic import BaseModel, Field, ValidationError

from dpn_plugin.training.recipe import MOST_PIXELS

__all__ = ["has_known_shape"]

#: names in a record become names of files, so none may lead out of the folder
FileName = Annotated[str, Field(pattern=r"^[A-Za-z0-9_][A-Za-z0-9_.-]{0,100}$")]
Length = Annotated[int, Field(ge=1, le=MOST_PIXELS)]


class _Network(BaseModel):
    sha256: str
    seconds: float = 0.0
    history: list[dict[str, float | None]] = []


class _Transform(BaseModel):
    mean: list[float]
    std: list[float]
    size: tuple[Length, Length] | None


class _Record(BaseModel):
    config: dict[str, Any]
    networks: dict[FileName, _Network]
    finished: bool = False
    files: dict[FileName, str] = {}
    classes: list[str] = []
    input_shape: list[Length] = Field([1], min_length=1, max_length=3)
    transform: _Transform | None = None


def has_known_shape(record: dict[str, Any]) -> bool:
    """:return: whether all that a record must have is there, and of the right type"""
    try:
        known = _Record.model_validate(record)
    except ValidationError:
        return False
    return not known.finished or not _FINISHED - record.keys()


_FINISHED = {"classes", "input_shape", "transform"}
