"""The same configuration gives the same weights, with every option of the training loop."""

import os
import signal
from pathlib import Path

import pytest
import torch
from child_processes import run_in_child
from safetensors.torch import load_file
from tiny_runs import CallAtStep, digits, points, train_on_one_thread, weight_hashes

from dpn_plugin._signals import Stopped
from dpn_plugin.backbones import create_backbone
from dpn_plugin.runs import Predictor
from dpn_plugin.training import train

OPTIONS = {
    "plain": {},
    "ema": {"ema_decay": 0.9},
    "clip": {"clip_grad": 0.1},
    "amp": {"amp": True},
    "dropout": {"drop_rate": 0.3},
    "sgd": {"optimizer": "sgd", "lr": 0.01, "weight_decay": 1e-3},
    "fine-tune": {"fine_tune": {"epochs": 2, "lr": 1e-5}},
}


def send_interrupt() -> None:
    os.kill(os.getpid(), signal.SIGINT)


@pytest.mark.parametrize("name", OPTIONS)
def test_stopped_in_an_epoch_and_continued_ends_the_same(name: str, tmp_path: Path) -> None:
    config = points(**OPTIONS[name])
    train(config, tmp_path / "whole", device="cpu")
    with pytest.raises(Stopped, match=r"after step 6 of (16|24)\. The same command goes on"):
        train(config, tmp_path / "interrupted", device="cpu", monitor=CallAtStep(6, send_interrupt))
    train(config, tmp_path / "interrupted", device="cpu")
    assert weight_hashes(tmp_path / "interrupted") == weight_hashes(tmp_path / "whole")


@pytest.mark.parametrize("name", [name for name in OPTIONS if name not in ("plain", "dropout")])
def test_every_option_makes_a_difference(name: str, tmp_path: Path) -> None:
    train(points(), tmp_path / "plain", device="cpu")
    train(points(**OPTIONS[name]), tmp_path / "other", device="cpu")
    assert weight_hashes(tmp_path / "plain") != weight_hashes(tmp_path / "other")


def test_weights_depend_on_the_seed_and_not_on_the_process(tmp_path: Path) -> None:
    train(digits(seed=1), tmp_path / "a", device="cpu")
    assert run_in_child(train_on_one_thread, digits(seed=1), tmp_path / "b") == 0
    train(digits(seed=2), tmp_path / "c", device="cpu")
    assert weight_hashes(tmp_path / "a") == weight_hashes(tmp_path / "b")
    assert weight_hashes(tmp_path / "a") != weight_hashes(tmp_path / "c")


def test_the_callers_random_state_does_not_matter(tmp_path: Path) -> None:
    torch.manual_seed(1)
    train(points(), tmp_path / "a", device="cpu")
    torch.manual_seed(2)
    train(points(), tmp_path / "b", device="cpu")
    assert weight_hashes(tmp_path / "a") == weight_hashes(tmp_path / "b")


def test_channels_last_changes_the_memory_layout_only(tmp_path: Path) -> None:
    recipe = digits().recipe
    changed = recipe.model_copy(update={"channels_last": True})
    plain = train(digits(), tmp_path / "a", device="cpu")
    other = train(digits(recipe=changed), tmp_path / "b", device="cpu")
    x = torch.randn(4, *Predictor(plain).classifier.input_size)
    with torch.inference_mode():
        torch.testing.assert_close(Predictor(plain)(x), Predictor(other)(x), rtol=0.05, atol=0.05)


@pytest.mark.slow
def test_a_compiled_network_learns_the_same_under_the_same_names(tmp_path: Path) -> None:
    train(points(epochs=1), tmp_path / "eager", device="cpu")
    train(points(epochs=1, compile=True), tmp_path / "compiled", device="cpu")
    eager, compiled = (
        load_file(tmp_path / name / "classifier.safetensors") for name in ("eager", "compiled")
    )
    assert eager.keys() == compiled.keys()
    for name, tensor in eager.items():
        torch.testing.assert_close(compiled[name], tensor, rtol=1e-3, atol=1e-4)


def test_the_moving_average_is_what_is_saved(tmp_path: Path) -> None:
    train(points(), tmp_path / "plain", device="cpu")
    train(points(ema_decay=0.999999), tmp_path / "ema", device="cpu")
    torch.manual_seed(0)
    initial = create_backbone("mlp_synthetic", 3, in_chans=2).model.state_dict()
    trained, kept = (
        load_file(tmp_path / name / "classifier.safetensors") for name in ("plain", "ema")
    )
    # timm's average follows for two steps (of Adam: the rate each) and then hardly moves
    rate = points().recipe.lr
    assert max((kept[name] - initial[name]).abs().max() for name in initial) < 2.1 * rate
    assert max((trained[name] - initial[name]).abs().max() for name in initial) > 3 * rate


def test_fine_tuning_runs_at_its_own_constant_rate(tmp_path: Path) -> None:
    run = train(points(**OPTIONS["fine-tune"]), tmp_path, device="cpu")
    rates = [epoch.lr for epoch in run.record.networks["classifier"].history]
    assert rates[4:] == [1e-5, 1e-5]
    assert 5e-3 > rates[0] > rates[1] > rates[2] > rates[3] > 1e-5


def test_a_warm_up_rises_within_its_epoch(tmp_path: Path) -> None:
    schedule = {"sched": "cosine", "warmup_epochs": 1}
    run = train(points(schedule=schedule), tmp_path, device="cpu")
    rates = [epoch.lr for epoch in run.record.networks["classifier"].history]
    assert rates[0] > 2.5e-3  # at the last of its four steps


def test_the_weights_are_those_of_the_lowest_held_out_loss(tmp_path: Path) -> None:
    run = train(points("baseline", epochs=6, lr=0.3), tmp_path, device="cpu")
    losses = [epoch.held_out_loss for epoch in run.record.networks["classifier"].history]
    held_out = load_file(tmp_path / "held_out.safetensors")
    found = torch.nn.functional.cross_entropy(held_out["logits"], held_out["labels"])
    assert float(found) == pytest.approx(min(losses), rel=1e-5)
    assert min(losses) < losses[-1]
