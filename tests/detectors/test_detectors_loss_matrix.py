"""The table of losses and backbones: its page, and a cell of each kind."""

import pytest

from benchmark_suites.matrix.losses import LossCell, loss_cell, page


def test_a_method_has_an_accuracy_and_an_auroc_of_its_score() -> None:
    found = loss_cell("confidence", "test_resnet", epochs=4, limit=300)
    assert found.score == "own-score"
    assert found.reads == "confidence and logits"
    assert found.accuracy > 0.3
    assert 0 <= found.auroc <= 1


def test_a_loss_without_a_method_has_a_reason() -> None:
    assert "No method trains with" in loss_cell("energy-margin", "test_resnet").reason


def test_the_page_shows_figures_and_one_letter_per_reason() -> None:
    cells = [
        LossCell("x", "net_a", "logits", True, "energy", accuracy=0.5, auroc=0.75),
        LossCell("x", "net_b", "logits", True, "energy", accuracy=1.0, auroc=1.0),
        LossCell("y", "net_a", "features", reason="y needs more."),
        LossCell("y", "net_b", "features", reason="y needs more."),
    ]
    text = page(cells)
    assert "| `x` | logits | yes | energy | 50 / 75 | 100 / 100 |" in text
    assert "| `y` | features | no |  | a | a |" in text
    assert text.count("y needs more.") == 1


@pytest.mark.parametrize("name", ["vos", "deep-sad"])
def test_the_page_of_the_docs_has_a_row(name: str) -> None:
    from pathlib import Path

    text = (Path(__file__).parents[2] / "docs" / "loss-matrix.md").read_text("utf-8")
    assert f"| `{name}` |" in text
