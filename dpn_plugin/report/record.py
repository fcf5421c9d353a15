"""``bench.json``: what a benchmark says about itself."""

import json
from pathlib import Path
from typing import Any

from pydantic import BaseModel, ValidationError

from dpn_plugin.errors import UserError

__all__ = ["DataRecord", "NotRun", "Record", "read_record"]

RECORD = "bench.json"
FORMAT = 1


class DataRecord(BaseModel):
    """
    A data set of the benchmark.

    :param source: where it came from, e.g. ``"torchvision:MNIST (test)"``
    :param samples: how many there were
    :param classes: the names of its classes, for in-domain data
    """

    source: str
    samples: int | None = None
    classes: list[str] = []


class NotRun(BaseModel):
    """Something that has no figures, and why; what is ``None`` concerns all of its kind."""

    backbone: str | None = None
    method: str | None = None
    seed: int | None = None
    detector: str | None = None
    dataset: str | None = None
    reason: str


class Record(BaseModel):
    """All of ``bench.json``."""

    suite: str
    title: str
    backbones: list[str]
    methods: list[str]
    detectors: list[str]
    seeds: list[int]
    sets: dict[str, dict[str, DataRecord]]
    in_domain: DataRecord
    in_domain_test: DataRecord | None = None
    outliers: dict[str, DataRecord] | None = None
    versions: dict[str, str] = {}
    device: str = ""
    started: str = ""
    seconds: float | None = None
    warnings: list[str] = []
    not_run: list[NotRun] = []
    command: str = ""

    def group(self, name: str) -> list[str]:
        """:return: the names of the OOD sets of ``"near"`` or ``"far"``"""
        return list(self.sets.get(name, {}))


def read_record(folder: Path) -> Record:
    """
    :param folder: what ``dpn bench`` wrote
    :raises UserError: if there is no record, it is damaged, or of another format
    """
    path = folder / RECORD
    try:
        content = json.loads(path.read_text("utf-8"))
    except FileNotFoundError:
        raise UserError(f"{folder} holds no benchmark: it has no {RECORD}.") from None
    except (OSError, ValueError, RecursionError) as error:
        raise UserError(f"{path} cannot be read: it is damaged or not JSON.") from error
    _check_format(path, content)
    try:
        return Record.model_validate(content)
    except ValidationError as error:
        first = error.errors(include_url=False)[0]
        where = ".".join(map(str, first["loc"]))
        raise UserError(f"{path} is damaged: {where}: {first['msg']}.") from error


def _check_format(path: Path, content: Any) -> None:
    found = content.get("format") if isinstance(content, dict) else None
    if found == FORMAT:
        return
    if isinstance(found, int) and found > FORMAT:
        raise UserError(f"{path} has format {found}, newer than {FORMAT}: update dpn-plugin.")
    told = "no format" if found is None else f"format {found!r}"
    raise UserError(
        f"{path} has {told}; this version reads format {FORMAT}. Run the same dpn bench again."
    )
