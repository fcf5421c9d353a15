"""A run that is killed at any moment and started again ends like one that was not."""

import signal
import time
from pathlib import Path

import pytest
from child_processes import kill_repeatedly, run_in_child
from tiny_runs import (
    digits,
    leftovers,
    points,
    train_and_die_at_step,
    train_and_die_in,
    train_on_one_thread,
    weight_hashes,
)

from dpn_plugin.runs import open_run
from dpn_plugin.training import train


@pytest.fixture(scope="module")
def uninterrupted(tmp_path_factory: pytest.TempPathFactory) -> Path:
    out = tmp_path_factory.mktemp("uninterrupted")
    train(digits(), out, device="cpu")
    return out


def check_ends_like(out: Path, uninterrupted: Path) -> None:
    train(digits(), out, device="cpu")
    assert weight_hashes(out) == weight_hashes(uninterrupted)
    assert leftovers(out) == []
    epochs, expected = (
        [
            epoch.model_dump(exclude={"seconds", "images_per_second"})
            for epoch in open_run(folder).record.networks["classifier"].history
        ]
        for folder in (out, uninterrupted)
    )
    assert epochs == expected


@pytest.mark.parametrize("step", [3, 8])
def test_killed_after_a_step(step: int, uninterrupted: Path, tmp_path: Path) -> None:
    assert run_in_child(train_and_die_at_step, digits(), tmp_path, step) == -signal.SIGKILL
    check_ends_like(tmp_path, uninterrupted)


@pytest.mark.parametrize(
    ("function", "call"),
    [
        ("dpn_plugin._files._sync", 1),
        ("dpn_plugin.runs.checkpoint.save_file", 4),
        ("dpn_plugin.runs.checkpoint.write_record", 2),
        ("dpn_plugin._files._sync", 6),
        ("dpn_plugin.training.network.write_history", 1),
        ("dpn_plugin.training.network.write_run_record", 2),
        ("dpn_plugin.training.train.write_held_out", 1),
    ],
)
def test_killed_while_writing(
    function: str, call: int, uninterrupted: Path, tmp_path: Path
) -> None:
    code = run_in_child(train_and_die_in, digits(), tmp_path, function, call)
    assert code == -signal.SIGKILL
    check_ends_like(tmp_path, uninterrupted)


def test_killed_repeatedly(uninterrupted: Path, tmp_path: Path) -> None:
    assert kill_repeatedly(train_on_one_thread, digits(), tmp_path, seconds=0.05)
    check_ends_like(tmp_path, uninterrupted)


def test_a_trained_network_is_not_trained_again(tmp_path: Path) -> None:
    config = points("deep-ensemble", options={"members": 2})
    train(config, tmp_path / "uninterrupted", device="cpu")
    function = "dpn_plugin.training.network.write_weights"
    assert run_in_child(train_and_die_in, config, tmp_path / "out", function, 2) == -signal.SIGKILL
    first = (tmp_path / "out" / "member-0.safetensors").stat().st_mtime_ns
    time.sleep(0.01)
    train(config, tmp_path / "out", device="cpu")
    assert (tmp_path / "out" / "member-0.safetensors").stat().st_mtime_ns == first
    assert weight_hashes(tmp_path / "out") == weight_hashes(tmp_path / "uninterrupted")
