"""A run that ends early keeps its last good checkpoint and explains what happened."""

import json
import os
import subprocess
from pathlib import Path

import pytest
from tiny_runs import CallAtStep, points, weight_hashes

from dpn_plugin.errors import UserError
from dpn_plugin.runs import Checkpoints, open_run
from dpn_plugin.training import train


def checkpoints(out: Path) -> list[Path]:
    return sorted((out / "checkpoints" / "classifier").glob("*"))


def find_newest(path: Path) -> Path | None:
    """Return the newest valid checkpoint with the same owner as the one at ``path``."""
    owner = json.loads((path / "state.json").read_text("utf-8"))["owner"]
    return Checkpoints(path.parent, owner).find_newest()


@pytest.fixture(scope="module")
def uninterrupted(tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    out = tmp_path_factory.mktemp("uninterrupted")
    train(points(), out, device="cpu")
    return weight_hashes(out)


CONSTANT = {"sched": "step", "decay_rate": 1.0}


class Interrupted(Exception):
    pass


def interrupt() -> None:
    raise Interrupted


def test_a_loss_that_is_not_finite_stops_the_run_and_names_remedies(tmp_path: Path) -> None:
    with pytest.raises(UserError) as caught:
        train(points(lr=1e20, schedule=CONSTANT), tmp_path, device="cpu")
    message = str(caught.value)
    for word in ("step 2", "learning rate 1e+20", "Lower the rate", "clip_grad", "amp"):
        assert word in message
    with pytest.raises(UserError, match="not finished"):
        open_run(tmp_path)


def test_a_late_divergence_keeps_the_last_good_checkpoint(tmp_path: Path) -> None:
    # the fine-tune phase, at a rate at which any network diverges, comes after four good epochs
    config = points(fine_tune={"epochs": 1, "lr": 1e25})
    for _ in range(2):
        with pytest.raises(UserError, match=r"step 18: .*The last good checkpoint is kept"):
            train(config, tmp_path, device="cpu")
        assert [path.name for path in checkpoints(tmp_path)][-1] == "step-000000016"


def test_a_damaged_checkpoint_is_replaced_by_the_previous_one(
    tmp_path: Path, uninterrupted: dict[str, str]
) -> None:
    with pytest.raises(Interrupted):
        train(points(), tmp_path, device="cpu", monitor=CallAtStep(9, interrupt))
    older, newer = checkpoints(tmp_path)
    damaged = newer / "model.safetensors"
    damaged.write_bytes(damaged.read_bytes()[:-1] + b"x")
    assert find_newest(older) == older
    train(points(), tmp_path, device="cpu")
    assert weight_hashes(tmp_path) == uninterrupted


@pytest.mark.parametrize("missing", ["state.json", "optimizer.pt"])
def test_a_checkpoint_with_a_missing_file_is_not_used(missing: str, tmp_path: Path) -> None:
    with pytest.raises(Interrupted):
        train(points(), tmp_path, device="cpu", monitor=CallAtStep(9, interrupt))
    older, newer = checkpoints(tmp_path)
    (newer / missing).unlink()
    assert find_newest(older) == older


def test_a_checkpoint_of_another_configuration_is_not_used(
    tmp_path: Path, uninterrupted: dict[str, str]
) -> None:
    with pytest.raises(Interrupted):
        train(points(lr=0.5), tmp_path, device="cpu", monitor=CallAtStep(9, interrupt))
    (tmp_path / "run.json").unlink()
    with pytest.raises(UserError, match=r"holds no run of dpn-plugin, but checkpoints"):
        train(points(), tmp_path, device="cpu")
    train(points(), tmp_path, device="cpu", is_ours=True)
    assert weight_hashes(tmp_path) == uninterrupted


def test_a_checkpoint_with_a_changed_state_is_not_used(tmp_path: Path) -> None:
    with pytest.raises(Interrupted):
        train(points(), tmp_path, device="cpu", monitor=CallAtStep(9, interrupt))
    older, newer = checkpoints(tmp_path)
    state = newer / "state.json"
    state.write_text(state.read_text("utf-8").replace('"step": 8', '"step": 9'), "utf-8")
    assert find_newest(older) == older


@pytest.fixture
def small_disk(tmp_path: Path):
    disk = tmp_path / "disk"
    disk.mkdir()
    if os.name != "posix" or os.geteuid() != 0:
        pytest.skip("only root can mount a small disk")
    mount = ["mount", "-t", "tmpfs", "-o", "size=2m", "tmpfs", str(disk)]
    if subprocess.run(mount, capture_output=True).returncode:
        pytest.skip("mounting is not permitted here")
    yield disk
    subprocess.run(["umount", str(disk)], check=True)


def test_a_full_disk_is_reported_and_the_previous_checkpoint_stays(
    small_disk: Path, uninterrupted: dict[str, str]
) -> None:
    filler = small_disk / "filler"

    def fill() -> None:
        free = os.statvfs(small_disk).f_bavail * os.statvfs(small_disk).f_bsize
        filler.write_bytes(b"x" * free)

    out = small_disk / "run"
    with pytest.raises(UserError, match=r"Cannot write .*step-000000008.*unchanged"):
        train(points(), out, device="cpu", monitor=CallAtStep(6, fill))
    assert [path.name for path in checkpoints(out)] == ["step-000000004"]
    filler.unlink()
    train(points(), out, device="cpu")
    assert weight_hashes(out) == uninterrupted
