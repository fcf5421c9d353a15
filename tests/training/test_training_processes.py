"""Several processes train one network: the joined batch, one writer, one end."""

import os
import signal
import sys
from pathlib import Path

import pytest
import torch
from safetensors.torch import load_file
from tiny_runs import FORKS, At, leftovers, points, weights
from two_processes import in_two_processes, torchrun

from dpn_plugin.training import Stopped, TrainConfig, open_run, train

#: plain SGD: weights differ from where they began by the rate times the sum of the gradients
PLAIN = {"optimizer": "momentum", "momentum": 0.0, "lr": 0.05, "epochs": 1}


def one_of_two(rank: int, config: TrainConfig, out: Path, stop_at: int) -> None:
    stop = At(stop_at, lambda: os.kill(os.getpid(), signal.SIGTERM)) if rank else None
    try:
        train(config, out, device="cpu", monitor=stop)
    except Stopped:
        sys.exit(130)


def together(config: TrainConfig, out: Path, stop_at: int = -1) -> list:
    return in_two_processes(FORKS, one_of_two, config, out, stop_at)


@pytest.fixture(scope="module")
def halves(tmp_path_factory: pytest.TempPathFactory) -> Path:
    out = tmp_path_factory.mktemp("halves")
    config = points(batch_size=16, outlier_batch_size=8, **PLAIN)
    assert together(config, out) == [0, 0]
    return out


def test_gradients_equal_those_of_one_process_on_the_joined_batch(
    halves: Path, tmp_path: Path
) -> None:
    train(points(batch_size=32, outlier_batch_size=16, **PLAIN), tmp_path, device="cpu")
    one, two = (load_file(out / "classifier.safetensors") for out in (tmp_path, halves))
    for name, tensor in one.items():
        torch.testing.assert_close(two[name], tensor, rtol=1e-5, atol=1e-6)
    rows = [
        open_run(out).record["networks"]["classifier"]["history"][0] for out in (tmp_path, halves)
    ]
    for figure in ("loss", "loss_in", "loss_out", "accuracy", "held_out_loss", "held_out_accuracy"):
        assert rows[0][figure] == pytest.approx(rows[1][figure], rel=1e-5)


def test_one_process_writes(halves: Path) -> None:
    assert open_run(halves).record["processes"] == 2
    assert leftovers(halves) == []


def test_asked_in_one_process_both_stop_after_the_same_step(tmp_path: Path) -> None:
    config = points(batch_size=16, outlier_batch_size=8, ema_decay=0.9)
    assert together(config, tmp_path / "stopped", stop_at=6) == [130, 130]
    assert together(config, tmp_path / "stopped") == [0, 0]
    assert together(config, tmp_path / "whole") == [0, 0]
    assert weights(tmp_path / "stopped") == weights(tmp_path / "whole")


def test_torchrun(tmp_path: Path) -> None:
    words = (
        "train --backbone mlp_synthetic --method oe --recipe synthetic --epochs 1 "
        "--in-domain synthetic:gaussians --outliers synthetic:gaussians-ood --limit 100 "
        "--device cpu --out"
    )
    done = torchrun(*words.split(), tmp_path)
    assert done.returncode == 0, done.stderr
    assert done.stdout.count("accuracy") == 1
    assert done.stderr.count("epoch 1:") == 1
    assert open_run(tmp_path).record["processes"] == 2
