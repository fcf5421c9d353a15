"""Sealed JSON comes back as it was, or not at all."""

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dpn_plugin.sealed import digest, sealed, unsealed

CONTENT = {"b": [1, 2.5, None], "a": {"ä": True, "10": "x", "9": "y"}}


def test_what_goes_in_comes_out() -> None:
    assert unsealed(sealed(CONTENT)) == unsealed(sealed(CONTENT, indent=1)) == CONTENT


def test_keys_and_values_that_are_not_json_become_text() -> None:
    assert unsealed(sealed({"k": {10: Path("here"), 9: 1}})) == {"k": {"10": "here", "9": 1}}


@given(st.data())
def test_no_flipped_bit_goes_unnoticed(data: st.DataObject) -> None:
    text = bytearray(sealed(CONTENT, indent=1).encode())
    at = data.draw(st.integers(0, len(text) - 2))  # the line end at the end says nothing
    text[at] ^= 1 << data.draw(st.integers(0, 7))
    try:
        found = unsealed(text.decode())
    except ValueError:
        return
    assert found == CONTENT  # a space for another


@pytest.mark.parametrize("text", ["", "{", "[]", "{}", '{"a": 1}', '{"sha256": "", "a": 1}'])
def test_what_was_never_sealed_is_refused(text: str) -> None:
    with pytest.raises(ValueError):  # noqa: PT011
        unsealed(text)


def test_a_seal_can_be_left_to_the_writer() -> None:
    assert unsealed('{"a": 1}', required=False) == {"a": 1}
    with pytest.raises(ValueError, match="does not match its hash"):
        unsealed('{"sha256": "", "a": 1}', required=False)


def test_the_digest_does_not_depend_on_the_order_of_keys() -> None:
    assert digest({"a": 1, "b": 2}) == digest({"b": 2, "a": 1}) != digest({"a": 2, "b": 1})
