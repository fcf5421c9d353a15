"""``dpn list detectors --backbone ID``."""

import json

import pytest
from typer.testing import CliRunner

import dpn_plugin
from dpn_plugin.cli import app


def listed(*words: str) -> dict[str, str | None]:
    result = CliRunner().invoke(app, ["list", "detectors", *words, "--json"])
    assert result.exit_code == 0, result.output
    return {each["name"]: each["not_applicable"] for each in json.loads(result.output)}


def test_the_column_says_what_goes_with_a_backbone_and_why_the_rest_does_not() -> None:
    column = listed("--backbone", "test_vit")
    assert list(column) == dpn_plugin.list_detectors()
    assert column["dpn-mi"] is None
    assert column["gram"] == "Gram needs feature maps, and test_vit has none."
    assert {name for name, reason in column.items() if reason} == {
        "gram",
        "mcd",
        "mcm",
        "multi-mahalanobis",
        "rank-feat",
    }


def test_a_pattern_narrows_the_column() -> None:
    assert listed("gra*", "--backbone", "test_resnet") == {
        "grad-norm": None,
        "grad-uncertainty": None,
        "gram": None,
    }


def test_the_table_is_for_people() -> None:
    result = CliRunner().invoke(app, ["list", "detectors", "mc?", "--backbone", "test_resnet"])
    assert "detectors on test_resnet" in result.output
    assert "not applicable: MCD needs dropout" in result.output


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["losses", "--backbone", "test_resnet"], "does not filter losses"),
        (["detectors", "--backbone", "test_resnt"], "Did you mean"),
    ],
)
def test_what_cannot_be_answered_ends_with_2(words: list[str], message: str) -> None:
    result = CliRunner().invoke(app, ["list", *words])
    assert result.exit_code == 2
    assert message in result.output
