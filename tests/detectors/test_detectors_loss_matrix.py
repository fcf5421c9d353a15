"""The table of losses and backbones: every loss takes a step or has a reason, and its page."""

from pathlib import Path

import pytest

from benchmark_suites.matrix.losses import OURS, LossCell, loss_cell, page
from dpn_plugin.plugins.pytorch_ood_losses import dpn_losses

NAMES = [*OURS, *(entry.name for entry in dpn_losses())]
PAGE = Path(__file__).parents[2] / "docs" / "loss-matrix.md"


@pytest.mark.parametrize("backbone", ["test_resnet", "test_vit"])
@pytest.mark.parametrize("name", NAMES)
def test_a_step_is_finite_or_has_a_reason(name: str, backbone: str) -> None:
    found = loss_cell(name, backbone)
    assert found.finite == (name != "energy-margin")
    assert bool(found.reason) == (name == "energy-margin")


def test_a_backbone_that_does_not_fit_has_a_reason() -> None:
    assert "one linear layer" in loss_cell("vos", "efficientformer_l1").reason
    assert "do not follow" in loss_cell("cac", "deit_tiny_distilled_patch16_224").reason


def test_the_page_shows_steps_and_one_letter_per_reason() -> None:
    cells = [
        LossCell("x", "net_a", "logits", True, finite=True),
        LossCell("x", "net_b", "logits", True),
        LossCell("y", "net_a", "features", own_score=True, reason="y needs 'net_a'."),
        LossCell("y", "net_b", "features", own_score=True, reason="y needs 'net_b'."),
    ]
    text = page(cells)
    assert "| `x` | logits | yes |  | yes | **not finite** |" in text
    assert "| `y` | features | no | `own-score` | a | a |" in text
    assert text.count("y needs the backbone.") == 1


@pytest.mark.parametrize("name", NAMES)
def test_every_loss_has_a_row_in_the_docs(name: str) -> None:
    assert f"| `{name}` |" in PAGE.read_text("utf-8")
