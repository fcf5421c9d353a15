"""Messages that name the mistake and the nearest names that are allowed."""

from dataclasses import dataclass
from typing import Annotated, Any

import pytest
from pydantic import BaseModel, ConfigDict, Field, TypeAdapter, ValidationError, field_validator

from dpn_plugin.errors import (
    CannotWrite,
    UserError,
    UserTypeError,
    choices,
    unknown_name,
    validation_message,
)

DETECTORS = ["dpn-dent", "dpn-entropy", "dpn-maxp", "dpn-mi", "dpn-precision", "energy-based"]


@pytest.mark.parametrize(
    ("name", "nearest"),
    [
        ("dpn-im", "dpn-mi"),
        ("DPN-MI", "dpn-mi"),
        ("dpn-entrpy", "dpn-entropy"),
        ("energy", "energy-based"),
    ],
)
def test_the_nearest_name_comes_first(name: str, nearest: str) -> None:
    error = unknown_name("detector", name, DETECTORS)
    assert isinstance(error, UserError)
    assert isinstance(error, ValueError)
    assert str(error).startswith(f"Unknown detector {name!r}. Did you mean {nearest!r}")


def test_suggestions_keep_their_capitals() -> None:
    message = str(unknown_name("data set", "cifar-10", ["CIFAR10", "MNIST"]))
    assert message.endswith("Did you mean 'CIFAR10'?")


def test_without_a_similar_name_the_known_ones_are_listed() -> None:
    message = str(unknown_name("suite", "xyz", ["tim", "c100", "c10"]))
    assert message == "Unknown suite 'xyz'. Known: c10, c100, tim."


def test_a_long_list_of_names_is_shortened() -> None:
    message = str(unknown_name("class", "?", [f"n{i:02}" for i in range(13)]))
    assert message.endswith("n10, n11 and 1 more.")
    assert "n12" not in message


def test_without_known_names_none_are_listed() -> None:
    assert str(unknown_name("plugin", "any", [])) == "Unknown plugin 'any'."


@pytest.mark.parametrize(
    ("names", "sentence"),
    [([], ""), (["a"], "'a'"), (["a", "b"], "'a' or 'b'"), (["a", "b", "c"], "'a', 'b' or 'c'")],
)
def test_choices_are_joined_with_or(names: list[str], sentence: str) -> None:
    assert choices(iter(names)) == sentence


@pytest.mark.parametrize(("error", "base"), [(UserTypeError, TypeError), (CannotWrite, OSError)])
def test_errors_of_users_are_user_errors(error: type, base: type) -> None:
    assert issubclass(error, UserError)
    assert issubclass(error, base) == (error is UserTypeError)


class Strict(BaseModel):
    model_config = ConfigDict(extra="forbid")


class Part(Strict):
    size: int = Field(1, ge=1)
    kind: str = "a"
    share: float = 0.5

    @field_validator("share")
    @classmethod
    def _is_a_share(cls, value: float) -> float:
        if value > 1:
            raise UserError(f"share must be at most 1, not {value:g}.")
        return value

    @field_validator("kind")
    @classmethod
    def _is_known(cls, value: str) -> str:
        if value == "b":
            raise ValueError("b is not offered")
        return value


@dataclass
class Point:
    x: float = 0.0


class Whole(Strict):
    name: str
    part: Part = Part()
    parts: dict[str, Part] = {}
    several: list[Part] = []
    one_or_none: Part | None = None
    either: Annotated[Part | int, Field()] = 1
    point: Point = Point()
    renamed: int = Field(1, alias="other-name")


@pytest.mark.parametrize(
    ("value", "message"),
    [
        ({}, "name is missing."),
        ({"nmae": "n"}, "Unknown key 'nmae'. Did you mean 'name'?"),
        ({"part": {"sise": 2}}, "part: Unknown key 'sise'. Did you mean 'size'?"),
        ({"name": 1}, "name: Input should be a valid string, not 1."),
        ({"nam": "n", "name": "n"}, "Unknown key 'nam'. Did you mean 'name'?"),
        ({"name": "n", "part": {"sise": 2}}, "part: Unknown key 'sise'. Did you mean 'size'?"),
        (
            {"name": "n", "part": {"size": 0}},
            "part.size: Input should be greater than or equal to 1, not 0.",
        ),
        (
            {"name": "n", "parts": {"mnist": {"size": "x"}}},
            "parts.mnist.size: Input should be a valid integer, unable to parse string as an "
            "integer, not 'x'.",
        ),
        ({"name": "n", "parts": {"mnist": {"sise": 2}}},
         "parts.mnist: Unknown key 'sise'. Did you mean 'size'?"),
        ({"name": "n", "several": [{}, {"kind": 3}]},
         "several.1.kind: Input should be a valid string, not 3."),
        ({"name": "n", "one_or_none": {"sise": 2}},
         "one_or_none: Unknown key 'sise'. Did you mean 'size'?"),
        ({"name": "n", "either": {"size": 0}},
         "either.size: Input should be greater than or equal to 1, not 0."),
        ({"name": "n", "point": {"y": 1}}, "point: Unknown key 'y'. Known: x."),
        ({"name": "n", "point": {"x": "far"}},
         "point.x: Input should be a valid number, unable to parse string as a number, not 'far'."),
        ({"name": "n", "renamed": 2},
         "Unknown key 'renamed'. Did you mean 'name' or 'other-name'?"),
        ({"name": "n", "several": [{"sise": 2}]},
         "several.0: Unknown key 'sise'. Did you mean 'size'?"),
        ({"name": "n", "part": {"kind": "b"}}, "part.kind: b is not offered, not 'b'."),
        ({"name": "n", "part": {"share": 2}}, "share must be at most 1, not 2."),
        ([], "The value: Input should be a valid dictionary or instance of Whole, not []."),
    ],
    ids=str,
)  # fmt: skip
def test_a_validation_error_becomes_a_sentence(value: Any, message: str) -> None:
    with pytest.raises(ValidationError) as caught:
        Whole.model_validate(value)
    assert validation_message(caught.value, Whole) == message


def test_the_sentence_names_the_place_and_the_kind_of_key() -> None:
    with pytest.raises(ValidationError) as caught:
        Part.model_validate({"sise": 2})
    found = validation_message(caught.value, Part, key="far.mnist", kind="option")
    assert found == "far.mnist: Unknown option 'sise'. Did you mean 'size'?"
    with pytest.raises(ValidationError) as caught:
        TypeAdapter(Part).validate_python({"size": None})
    found = validation_message(caught.value, Part, key="far.mnist")
    assert found == "far.mnist.size: Input should be a valid integer, not None."
