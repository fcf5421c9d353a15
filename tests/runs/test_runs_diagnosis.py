"""A training that learned nothing is recognised from its history and its held-out logits."""

from pathlib import Path
from typing import Any

import pytest
import torch
from tiny_runs import points

from dpn_plugin.runs import EpochRecord, diagnose
from dpn_plugin.runs.diagnosis import loss_problems, output_problems
from dpn_plugin.training import train

LABELS = torch.arange(120) % 4


def epochs(losses: list[float], held_out: list[float] | None = None) -> list[EpochRecord]:
    rest: dict[str, Any] = dict.fromkeys(("lr", "loss_in", "loss_out", "accuracy"), 0.0)
    rest |= dict.fromkeys(("held_out_accuracy", "seconds", "images_per_second"), 0.0)
    pairs = zip(losses, held_out or losses, strict=True)
    return [
        EpochRecord(epoch=number, loss=loss, held_out_loss=other, **rest)
        for number, (loss, other) in enumerate(pairs, 1)
    ]


@pytest.mark.parametrize(
    ("losses", "held_out"),
    [
        ([2.303, 2.302], [2.303, 2.302]),
        ([1.0, 1.2], [1.0, 1.2]),
        ([-0.5, -0.502], [-0.5, -0.502]),
        ([0.0, 0.0], [0.0, 0.0]),
        ([2.20, 2.15], [2.011, 2.011]),  # other samples, the same weights
    ],
)
def test_a_loss_that_did_not_fall_is_reported(losses: list[float], held_out: list[float]) -> None:
    (found,) = loss_problems(epochs(losses, held_out), "classifier")
    assert "The loss of classifier did not fall" in found
    assert f"{held_out[0]:.4g} after epoch 1 and {held_out[-1]:.4g} after epoch 2" in found


@pytest.mark.parametrize(
    ("losses", "held_out"),
    [
        ([2.3, 2.0], [2.3, 2.4]),  # learned by heart
        ([0.8, 1.2], [1.5, 1.1]),  # EDL: the weight of a term grows
        ([-0.5, -0.6], [-0.5, -0.4]),
        ([-0.5, -0.6], [-0.5, -0.6]),
        ([2.3], [2.3]),  # one epoch: nothing to compare
    ],
)
def test_a_loss_that_fell_is_not(losses: list[float], held_out: list[float]) -> None:
    assert loss_problems(epochs(losses, held_out), "classifier") == []


def test_an_accuracy_as_by_guessing_is_reported() -> None:
    logits = torch.randn(120, 4, generator=torch.Generator().manual_seed(0))
    (found,) = output_problems(logits, LABELS)
    assert "is that of guessing" in found
    assert "0.2500 by always naming the most frequent of 4 classes" in found


def test_the_most_frequent_class_is_no_achievement() -> None:
    labels = torch.cat([torch.zeros(90), torch.ones(30)]).long()
    logits = torch.tensor([[3.0, 0.0]]) + 0.1 * torch.randn(120, 2)
    assert "0.7500 of 120 samples, and 0.7500" in output_problems(logits, labels)[0]


def test_scores_that_hardly_vary_are_reported() -> None:
    found = output_problems(torch.full((120, 4), 0.5), LABELS)
    assert len(found) == 2
    assert "The scores hardly vary: over 120 held-out samples" in found[1]


def test_certain_predictions_are_no_problem() -> None:
    right = 40.0 * torch.nn.functional.one_hot(LABELS, 4)
    assert output_problems(right, LABELS) == []


def test_outliers_do_not_count_for_the_accuracy() -> None:
    right = 4.0 * torch.nn.functional.one_hot(LABELS, 4)
    logits, labels = torch.cat([right, torch.zeros(500, 4)]), torch.cat([LABELS, -torch.ones(500)])
    assert output_problems(logits, labels.long()) == []


def test_a_run_is_diagnosed_from_its_folder(tmp_path: Path) -> None:
    assert diagnose(train(points(epochs=20), tmp_path / "good", device="cpu")) == []
    found = diagnose(train(points(epochs=2, lr=1e-9), tmp_path / "bad", device="cpu"))
    assert any("The loss of classifier did not fall" in each for each in found)
