"""Killed at any moment and started again, a run ends like one that was left alone."""

import signal
import time
from pathlib import Path

import pytest
from tiny_runs import (
    FORKS,
    digits,
    in_child,
    leftovers,
    points,
    train_and_die_at_step,
    train_and_die_in,
    train_quietly,
    weights,
)

from dpn_plugin.training import open_run, train


@pytest.fixture(scope="module")
def undisturbed(tmp_path_factory: pytest.TempPathFactory) -> Path:
    out = tmp_path_factory.mktemp("undisturbed")
    train(digits(), out, device="cpu")
    return out


def check_like(out: Path, undisturbed: Path) -> None:
    train(digits(), out, device="cpu")
    assert weights(out) == weights(undisturbed)
    assert leftovers(out) == []
    rows, expected = (
        [
            {
                key: value
                for key, value in row.items()
                if key not in ("seconds", "images_per_second")
            }
            for row in open_run(folder).record["networks"]["classifier"]["history"]
        ]
        for folder in (out, undisturbed)
    )
    assert rows == expected


@pytest.mark.parametrize("step", [3, 8])
def test_after_a_step(step: int, undisturbed: Path, tmp_path: Path) -> None:
    assert in_child(train_and_die_at_step, digits(), tmp_path, step) == -signal.SIGKILL
    check_like(tmp_path, undisturbed)


@pytest.mark.parametrize(
    ("place", "call"),
    [
        ("dpn_plugin.files.sync", 1),
        ("dpn_plugin.training.checkpoint.save_file", 4),
        ("dpn_plugin.training.checkpoint.sync", 2),
        ("dpn_plugin.training.train.write_history", 1),
        ("dpn_plugin.training.train.write_record", 2),
        ("dpn_plugin.training.train.write_held_out", 1),
    ],
)
def test_in_the_middle_of_writing(place: str, call: int, undisturbed: Path, tmp_path: Path) -> None:
    code = in_child(train_and_die_in, digits(), tmp_path, place, call)
    assert code == -signal.SIGKILL
    check_like(tmp_path, undisturbed)


def test_again_and_again_at_any_time(undisturbed: Path, tmp_path: Path) -> None:
    kills, patience = 0, 0.5
    while True:
        child = FORKS.Process(target=train_quietly, args=(digits(), tmp_path))
        child.start()
        child.join(patience)
        if child.exitcode is not None:
            break
        child.kill()
        child.join()
        kills += 1
        patience *= 1.4
        assert kills < 30
    assert child.exitcode == 0
    assert kills
    check_like(tmp_path, undisturbed)


def test_a_second_network_is_not_trained_twice(tmp_path: Path) -> None:
    config = points("deep-ensemble", options={"members": 2})
    train(config, tmp_path / "undisturbed", device="cpu")
    place = "dpn_plugin.training.train.write_weights"
    assert in_child(train_and_die_in, config, tmp_path / "out", place, 2) == -signal.SIGKILL
    first = (tmp_path / "out" / "member-0.safetensors").stat().st_mtime_ns
    time.sleep(0.01)
    train(config, tmp_path / "out", device="cpu")
    assert (tmp_path / "out" / "member-0.safetensors").stat().st_mtime_ns == first
    assert weights(tmp_path / "out") == weights(tmp_path / "undisturbed")
