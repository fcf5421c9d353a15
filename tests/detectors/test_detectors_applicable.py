"""Which detectors can be used with a backbone, and ``dpn list detectors --backbone ID``."""

import json

import pytest
import torch
from typer.testing import CliRunner

import dpn_plugin
from dpn_plugin.backbones import create_backbone
from dpn_plugin.cli import app
from dpn_plugin.detectors import why_not_applicable
from dpn_plugin.errors import UserError


def listed(*arguments: str) -> dict[str, str | None]:
    result = CliRunner().invoke(app, ["list", "detectors", *arguments, "--json"])
    assert result.exit_code == 0, result.output
    return {each["name"]: each["not_applicable"] for each in json.loads(result.output)}


def test_each_detector_is_applicable_or_listed_with_a_reason() -> None:
    found = listed("--backbone", "test_vit")
    assert list(found) == dpn_plugin.list_detectors()
    assert found["dpn-mi"] is None
    assert found["gram"] == "Gram needs feature maps, and test_vit has none."
    assert {name for name, reason in found.items() if reason} == {
        "gram",
        "mcd",
        "mcm",
        "multi-mahalanobis",
        "rank-feat",
    }


def test_a_pattern_filters_the_list() -> None:
    assert listed("gra*", "--backbone", "test_resnet") == {
        "grad-norm": None,
        "grad-uncertainty": None,
        "gram": None,
    }


def test_the_table_shows_the_reason() -> None:
    result = CliRunner().invoke(app, ["list", "detectors", "mc?", "--backbone", "test_resnet"])
    assert "detectors on test_resnet" in result.output
    assert "not applicable: MCD needs dropout" in result.output


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["losses", "--backbone", "test_resnet"], "does not filter losses"),
        (["detectors", "--backbone", "test_resnt"], "Did you mean"),
    ],
)
def test_a_wrong_kind_or_backbone_exits_with_2(arguments: list[str], message: str) -> None:
    result = CliRunner().invoke(app, ["list", *arguments])
    assert result.exit_code == 2
    assert message in result.output


def test_a_detector_is_applicable_or_there_is_a_reason() -> None:
    model = create_backbone("test_vit", num_classes=3)
    assert why_not_applicable("knn", model) is None
    assert why_not_applicable("gram", model) == "Gram needs feature maps, and test_vit has none."
    reason = why_not_applicable("gram", torch.nn.Identity())
    assert reason is not None
    assert reason.startswith("Detector 'gram' takes no model that gives logits alone")


def test_an_unknown_detector_is_a_reason_too() -> None:
    model = torch.nn.Identity()
    reason = why_not_applicable("dpn-mutual", model)
    with pytest.raises(UserError) as caught:
        dpn_plugin.create_detector("dpn-mutual", model)
    assert reason == str(caught.value)
