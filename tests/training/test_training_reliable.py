"""Every method learns with a network whose first logits are far from zero."""

from pathlib import Path

import pytest

from dpn_plugin.runs import Recipe, TrainConfig
from dpn_plugin.training import train

# a family whose first logits reach 6, in larger members 14
BACKBONE = "test_efficientnet"


def held_out_accuracy(method: str, out: Path, **changes: float) -> float:
    config = TrainConfig(
        backbone=BACKBONE,
        method=method,
        in_domain={"source": "sklearn:digits", "classes": {"first": 7}},
        outliers={"source": "sklearn:digits", "classes": {"from": 7}},
        recipe=Recipe.named("small", epochs=5, **changes),
        stem="small",
        seed=1,
    )
    history = train(config, out, device="cpu").record.networks["classifier"].history
    return min(history, key=lambda epoch: epoch.held_out_loss).held_out_accuracy


@pytest.mark.parametrize(
    "method", ["baseline", "oe", "edl", "dpn-fwd", "dpn-rev", "dpn-plus", "dpn-minus-anchored"]
)
def test_every_loss_learns_from_large_first_logits(method: str, tmp_path: Path) -> None:
    assert held_out_accuracy(method, tmp_path) > 0.75


def test_the_limit_of_the_gradient_is_what_makes_reverse_kl_learn(tmp_path: Path) -> None:
    assert held_out_accuracy("dpn-rev", tmp_path, clip_grad=1e9) < 0.6
