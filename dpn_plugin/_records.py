"""
Records: JSON files with one pydantic model each.

A record carries the hash of its own content, which is verified whenever the record is read.
"""

import hashlib
import json
from pathlib import Path
from typing import Any, TypeVar

from pydantic import BaseModel, ConfigDict, ValidationError

from dpn_plugin._files import write_text
from dpn_plugin.errors import UserError, validation_message

#: the version of all record formats; records of other versions are not read
FORMAT = 2

_HASH = "sha256"


class DamagedRecord(UserError):
    """A record that cannot be read, or that is not what was written."""


class NewerFormat(DamagedRecord):
    """A record that a later version of this package wrote."""


class Record(BaseModel):
    """The base of all models of JSON files that we write."""

    model_config = ConfigDict(extra="forbid")

    format: int = FORMAT


RecordType = TypeVar("RecordType", bound=Record)


def write_record(path: Path, record: Record) -> None:
    """Write a record and the hash of its content as JSON."""
    content = record.model_dump(mode="json")
    write_text(path, json.dumps({_HASH: json_hash(content), **content}, indent=1) + "\n")


def read_record(path: Path, model: type[RecordType]) -> RecordType:
    """
    Read a record and verify its hash.

    :param path: a file that :func:`write_record` wrote
    :param model: the model of the record
    :raises FileNotFoundError: if there is no such file
    :raises DamagedRecord: if the content is not what was written, or of another format
    """
    try:
        content = json.loads(path.read_text("utf-8"))
        if not isinstance(content, dict):
            raise ValueError("it is not a JSON object")
        _check_format(path, content.get("format"))
        if content.pop(_HASH, None) != json_hash(content):
            raise ValueError("its content does not match its hash")
        return model.model_validate(content)
    except (FileNotFoundError, DamagedRecord):
        raise
    except ValidationError as error:
        raise DamagedRecord(f"{path} is damaged: {validation_message(error, model)}") from error
    except RecursionError as error:
        raise DamagedRecord(f"{path} is damaged: it is nested too deeply.") from error
    except (OSError, ValueError) as error:
        raise DamagedRecord(f"{path} is damaged: {error}.") from error


def _check_format(path: Path, found: object) -> None:
    if found == FORMAT:
        return
    if isinstance(found, int) and found > FORMAT:
        raise NewerFormat(f"{path} has format {found}, newer than {FORMAT}: update dpn-plugin.")
    described = "no format" if found is None else f"format {found!r}"
    raise DamagedRecord(f"{path} has {described}; this version reads format {FORMAT}.")


def json_hash(content: Any) -> str:
    """Return a hash of JSON content that does not depend on the order of its keys."""
    return hashlib.sha256(json.dumps(content, sort_keys=True).encode()).hexdigest()
