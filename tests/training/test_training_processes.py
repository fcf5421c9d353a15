"""Several processes train one network on joined batches; one of them writes, all stop together."""

import os
import signal
import sys
from pathlib import Path

import pytest
import torch
from child_processes import run_in_two_processes, run_with_torchrun
from safetensors.torch import load_file
from tiny_runs import CallAtStep, leftovers, points, weight_hashes

from dpn_plugin._signals import Stopped
from dpn_plugin.runs import TrainConfig, open_run
from dpn_plugin.training import train

#: plain SGD: weights differ from the initial ones by the rate times the sum of the gradients
PLAIN = {"optimizer": "momentum", "momentum": 0.0, "lr": 0.05, "epochs": 1}


def train_rank(rank: int, config: TrainConfig, out: Path, stop_at: int) -> None:
    stop = CallAtStep(stop_at, lambda: os.kill(os.getpid(), signal.SIGTERM)) if rank else None
    try:
        train(config, out, device="cpu", monitor=stop)
    except Stopped:
        sys.exit(130)


def train_in_two_processes(config: TrainConfig, out: Path, stop_at: int = -1) -> list[int | None]:
    return run_in_two_processes(train_rank, config, out, stop_at)


@pytest.fixture(scope="module")
def two_ranks(tmp_path_factory: pytest.TempPathFactory) -> Path:
    out = tmp_path_factory.mktemp("two_ranks")
    config = points(batch_size=16, outlier_batch_size=8, **PLAIN)
    assert train_in_two_processes(config, out) == [0, 0]
    return out


def test_gradients_equal_those_of_one_process_on_the_joined_batch(
    two_ranks: Path, tmp_path: Path
) -> None:
    train(points(batch_size=32, outlier_batch_size=16, **PLAIN), tmp_path, device="cpu")
    one, two = (load_file(out / "classifier.safetensors") for out in (tmp_path, two_ranks))
    for name, tensor in one.items():
        torch.testing.assert_close(two[name], tensor, rtol=1e-5, atol=1e-6)
    epochs = [
        open_run(out).record.networks["classifier"].history[0].model_dump()
        for out in (tmp_path, two_ranks)
    ]
    for figure in ("loss", "loss_in", "loss_out", "accuracy", "held_out_loss", "held_out_accuracy"):
        assert epochs[0][figure] == pytest.approx(epochs[1][figure], rel=1e-5)


def test_one_process_writes_the_files(two_ranks: Path) -> None:
    assert open_run(two_ranks).record.processes == 2
    assert leftovers(two_ranks) == []


def test_a_signal_to_one_process_stops_both_after_the_same_step(tmp_path: Path) -> None:
    config = points(batch_size=16, outlier_batch_size=8, ema_decay=0.9)
    assert train_in_two_processes(config, tmp_path / "stopped", stop_at=6) == [130, 130]
    assert train_in_two_processes(config, tmp_path / "stopped") == [0, 0]
    assert train_in_two_processes(config, tmp_path / "whole") == [0, 0]
    assert weight_hashes(tmp_path / "stopped") == weight_hashes(tmp_path / "whole")


def test_torchrun(tmp_path: Path) -> None:
    arguments = (
        "train --backbone mlp_synthetic --method oe --recipe synthetic --epochs 1 "
        "--in-domain synthetic:gaussians --outliers synthetic:gaussians-ood --limit 100 "
        "--device cpu --out"
    )
    done = run_with_torchrun(*arguments.split(), tmp_path)
    assert done.returncode == 0, done.stderr
    assert done.stdout.count("accuracy") == 1
    assert done.stderr.count("epoch 1:") == 1
    assert open_run(tmp_path).record.processes == 2
