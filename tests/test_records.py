"""A record is read as it was written, or refused."""

import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from dpn_plugin._records import (
    FORMAT,
    DamagedRecord,
    NewerFormat,
    Record,
    json_hash,
    read_record,
    write_record,
)


class Example(Record):
    b: list[float | None]
    a: dict[str, bool | str | Path]


EXAMPLE = Example(b=[1, 2.5, None], a={"ä": True, "10": "x", "9": Path("here")})


@pytest.fixture
def path(tmp_path: Path) -> Path:
    write_record(tmp_path / "record.json", EXAMPLE)
    return tmp_path / "record.json"


def write_with_hash(path: Path, content: dict[str, Any]) -> None:
    path.write_text(json.dumps({"sha256": json_hash(content), **content}))


def test_a_record_is_read_as_it_was_written(path: Path) -> None:
    found = read_record(path, Example)
    assert (found.b, found.format) == (EXAMPLE.b, FORMAT)
    assert found.model_dump(mode="json") == EXAMPLE.model_dump(mode="json")


def test_the_file_is_json_with_a_hash_and_a_format(path: Path) -> None:
    content = json.loads(path.read_text("utf-8"))
    assert content.pop("sha256") == json_hash(content)
    assert content == {
        "format": FORMAT,
        "b": [1.0, 2.5, None],
        "a": {"ä": True, "10": "x", "9": "here"},
    }


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(data=st.data())
def test_every_flipped_bit_is_detected(data: st.DataObject, path: Path) -> None:
    written = path.read_bytes()
    content = bytearray(written)
    at = data.draw(st.integers(0, len(content) - 2))  # the line break at the end carries nothing
    content[at] ^= 1 << data.draw(st.integers(0, 7))
    path.write_bytes(content)
    try:
        found = read_record(path, Example)
    except DamagedRecord:
        return
    finally:
        path.write_bytes(written)
    assert found == read_record(path, Example)  # e.g. a line break instead of a space


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "is damaged: Expecting value"),
        ("{", "is damaged: Expecting property name"),
        ("[]", "is damaged: it is not a JSON object"),
        ("[" * 100_000, "is damaged: it is nested too deeply"),
        ("{}", f"has no format; this version reads format {FORMAT}"),
        ('{"a": 1}', f"has no format; this version reads format {FORMAT}"),
        ('{"sha256": "", "a": 1}', f"has no format; this version reads format {FORMAT}"),
        (f'{{"format": {FORMAT}, "a": 1}}', "is damaged: its content does not match its hash"),
        (f'{{"format": {FORMAT}, "sha256": ""}}', "is damaged: its content does not match its"),
    ],
)
def test_other_files_are_refused(text: str, message: str, path: Path) -> None:
    path.write_text(text)
    with pytest.raises(DamagedRecord, match=f"record.json {message}"):
        read_record(path, Example)


def test_bytes_that_are_not_utf8_are_refused(path: Path) -> None:
    path.write_bytes(b"\xff{}")
    with pytest.raises(DamagedRecord, match=r"record.json is damaged: .*can't decode byte 0xff"):
        read_record(path, Example)


def test_a_folder_in_place_of_a_record_is_refused(tmp_path: Path) -> None:
    with pytest.raises(DamagedRecord, match=r"is damaged: .*Is a directory"):
        read_record(tmp_path, Example)


def test_a_missing_record_is_not_a_damaged_one(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError):
        read_record(tmp_path / "record.json", Example)


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"format": FORMAT - 1}, rf"has format {FORMAT - 1}; this version reads format {FORMAT}"),
        ({"format": None}, "has no format"),
        ({"format": "2"}, "has format '2'; this version reads"),
        ({"format": FORMAT + 1}, rf"has format {FORMAT + 1}, newer than {FORMAT}: update dpn-plug"),
        ({"b": "three"}, "is damaged: b: Input should be a valid list, not 'three'"),
        ({"b": [1, "x"]}, "is damaged: b.1: Input should be a valid number"),
        ({"c": 1}, "is damaged: Unknown key 'c'. Known: a, b, format"),
    ],
)
def test_another_format_or_model_is_refused_even_with_a_valid_hash(
    changes: dict, message: str, path: Path
) -> None:
    write_with_hash(path, EXAMPLE.model_dump(mode="json") | changes)
    with pytest.raises(DamagedRecord, match=message):
        read_record(path, Example)


def test_a_missing_key_is_named(path: Path) -> None:
    content = EXAMPLE.model_dump(mode="json")
    del content["b"]
    write_with_hash(path, content)
    with pytest.raises(DamagedRecord, match=r"is damaged: b is missing\."):
        read_record(path, Example)


def test_a_newer_format_can_be_told_from_damage(path: Path) -> None:
    write_with_hash(path, EXAMPLE.model_dump(mode="json") | {"format": FORMAT + 1})
    with pytest.raises(NewerFormat):
        read_record(path, Example)


def test_the_hash_does_not_depend_on_the_order_of_keys() -> None:
    one, two = json_hash({"a": 1, "b": 2}), json_hash({"b": 2, "a": 1})
    assert one == two != json_hash({"a": 2, "b": 1})
    assert len(one) == 64
