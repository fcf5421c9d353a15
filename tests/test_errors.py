"""Errors that help."""

import pytest

from dpn_plugin.errors import UserError, choices, unknown_name

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


def test_names_keep_their_capitals() -> None:
    message = str(unknown_name("data set", "cifar-10", ["CIFAR10", "MNIST"]))
    assert message.endswith("Did you mean 'CIFAR10'?")


def test_a_name_like_no_other_gets_the_known_ones() -> None:
    message = str(unknown_name("suite", "xyz", ["tim", "c100", "c10"]))
    assert message == "Unknown suite 'xyz'. Known: c10, c100, tim."


def test_many_known_names_are_cut_short() -> None:
    message = str(unknown_name("class", "?", [f"n{i:02}" for i in range(13)]))
    assert message.endswith("n10, n11 and 1 more.")
    assert "n12" not in message


def test_where_nothing_is_known_nothing_is_offered() -> None:
    assert str(unknown_name("plugin", "any", [])) == "Unknown plugin 'any'."


@pytest.mark.parametrize(
    ("names", "sentence"),
    [([], ""), (["a"], "'a'"), (["a", "b"], "'a' or 'b'"), (["a", "b", "c"], "'a', 'b' or 'c'")],
)
def test_choices_read_as_a_sentence(names: list[str], sentence: str) -> None:
    assert choices(iter(names)) == sentence
