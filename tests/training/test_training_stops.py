"""What ends a run early leaves the last good checkpoint, and one or two sentences."""

import json
import os
import subprocess
from pathlib import Path

import pytest
from tiny_runs import At, points, weights

from dpn_plugin.errors import UserError
from dpn_plugin.training import open_run, train
from dpn_plugin.training.checkpoint import Checkpoints


def checkpoints(out: Path) -> list[Path]:
    return sorted((out / "checkpoints" / "classifier").glob("*"))


def newest(path: Path) -> Path | None:
    owner = json.loads((path / "state.json").read_text("utf-8"))["owner"]
    return Checkpoints(path.parent, owner).newest()


@pytest.fixture(scope="module")
def undisturbed(tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    out = tmp_path_factory.mktemp("undisturbed")
    train(points(), out, device="cpu")
    return weights(out)


CONSTANT = {"sched": "step", "decay_rate": 1.0}


class Stop(Exception):
    pass


def interrupt() -> None:
    raise Stop


def test_a_loss_that_is_not_finite_stops_the_run_with_the_remedies(tmp_path: Path) -> None:
    with pytest.raises(UserError) as caught:
        train(points(lr=1e20, schedule=CONSTANT), tmp_path, device="cpu")
    message = str(caught.value)
    for word in ("step 2", "learning rate 1e+20", "Lower the rate", "clip_grad", "amp"):
        assert word in message
    with pytest.raises(UserError, match="not finished"):
        open_run(tmp_path)


def test_a_late_divergence_keeps_the_last_good_checkpoint(tmp_path: Path) -> None:
    # the fine-tune phase, at a rate that no network survives, comes after four good epochs
    config = points(fine_tune={"epochs": 1, "lr": 1e25})
    for _ in range(2):
        with pytest.raises(UserError, match=r"step 18: .*The last good checkpoint is kept"):
            train(config, tmp_path, device="cpu")
        assert [path.name for path in checkpoints(tmp_path)][-1] == "step-000000016"


def test_a_damaged_checkpoint_costs_only_the_time_to_the_one_before(
    tmp_path: Path, undisturbed: dict[str, str]
) -> None:
    with pytest.raises(Stop):
        train(points(), tmp_path, device="cpu", monitor=At(9, interrupt))
    older, newer = checkpoints(tmp_path)
    damaged = newer / "model.safetensors"
    damaged.write_bytes(damaged.read_bytes()[:-1] + b"x")
    assert newest(older) == older
    train(points(), tmp_path, device="cpu")
    assert weights(tmp_path) == undisturbed


@pytest.mark.parametrize("damage", ["state.json", "optimizer.pt"])
def test_a_missing_part_counts_as_damage(damage: str, tmp_path: Path) -> None:
    with pytest.raises(Stop):
        train(points(), tmp_path, device="cpu", monitor=At(9, interrupt))
    older, newer = checkpoints(tmp_path)
    (newer / damage).unlink()
    assert newest(older) == older


def test_a_checkpoint_of_another_plan_is_not_used(
    tmp_path: Path, undisturbed: dict[str, str]
) -> None:
    with pytest.raises(Stop):
        train(points(lr=0.5), tmp_path, device="cpu", monitor=At(9, interrupt))
    (tmp_path / "run.json").unlink()
    train(points(), tmp_path, device="cpu")
    assert weights(tmp_path) == undisturbed


def test_a_state_that_was_damaged_is_not_used(tmp_path: Path, undisturbed: dict[str, str]) -> None:
    with pytest.raises(Stop):
        train(points(), tmp_path, device="cpu", monitor=At(9, interrupt))
    older, newer = checkpoints(tmp_path)
    state = newer / "state.json"
    state.write_text(state.read_text("utf-8").replace('"step": 8', '"step": 9'), "utf-8")
    assert newest(older) == older


@pytest.fixture
def small_disk(tmp_path: Path):
    disk = tmp_path / "disk"
    disk.mkdir()
    if os.name != "posix" or os.geteuid() != 0:
        pytest.skip("only root can mount a small disk")
    mount = ["mount", "-t", "tmpfs", "-o", "size=2m", "tmpfs", str(disk)]
    if subprocess.run(mount, capture_output=True).returncode:
        pytest.skip("no disk can be mounted here")
    yield disk
    subprocess.run(["umount", str(disk)], check=True)


def test_a_full_disk_is_named_and_the_previous_checkpoint_stays(
    small_disk: Path, undisturbed: dict[str, str]
) -> None:
    filler = small_disk / "filler"

    def fill() -> None:
        free = os.statvfs(small_disk).f_bavail * os.statvfs(small_disk).f_bsize
        filler.write_bytes(b"x" * free)

    out = small_disk / "run"
    with pytest.raises(UserError, match=r"Cannot write .*step-000000008.*unchanged"):
        train(points(), out, device="cpu", monitor=At(6, fill))
    assert [path.name for path in checkpoints(out)] == ["step-000000004"]
    filler.unlink()
    train(points(), out, device="cpu")
    assert weights(out) == undisturbed
