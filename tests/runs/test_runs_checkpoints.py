"""Checkpoints: the two newest are kept, and the newest valid one of the same owner is used."""

import json
from pathlib import Path

import pytest
import torch

from dpn_plugin._files import file_hash
from dpn_plugin._records import FORMAT, json_hash
from dpn_plugin.errors import CannotWrite, UserError
from dpn_plugin.runs import Checkpoints, TrainerState, write_weights
from dpn_plugin.runs.checkpoint import read_tensors, read_weights

WEIGHTS = {"model": {"w": torch.arange(6.0).reshape(2, 3)}, "best": {"w": torch.zeros(2, 3)}}
OPTIMIZER = {"state": {0: {"momentum": torch.ones(3)}}, "param_groups": [{"lr": 0.1}]}


def state(step: int) -> TrainerState:
    return TrainerState(step=step, best_loss=None, history=[], sums={"loss": 0.1 * step})


@pytest.fixture
def checkpoints(tmp_path: Path) -> Checkpoints:
    return Checkpoints(tmp_path / "checkpoints" / "classifier", "owner")


def save(checkpoints: Checkpoints, *steps: int) -> None:
    for step in steps:
        checkpoints.save(state(step), WEIGHTS, OPTIMIZER)


def names(checkpoints: Checkpoints) -> list[str]:
    return sorted(path.name for path in checkpoints.folder.iterdir())


def test_without_a_checkpoint_there_is_no_newest(checkpoints: Checkpoints) -> None:
    assert checkpoints.find_newest() is None


def test_a_checkpoint_is_loaded_as_it_was_saved(checkpoints: Checkpoints) -> None:
    save(checkpoints, 7)
    found, weights, optimizer = checkpoints.load(checkpoints.find_newest())
    assert found == state(7)
    assert weights.keys() == WEIGHTS.keys()
    assert torch.equal(weights["model"]["w"], WEIGHTS["model"]["w"])
    assert torch.equal(optimizer["state"][0]["momentum"], torch.ones(3))
    assert optimizer["param_groups"] == OPTIMIZER["param_groups"]


def test_the_two_newest_are_kept(checkpoints: Checkpoints) -> None:
    save(checkpoints, 1, 2, 10)
    assert names(checkpoints) == ["step-000000002", "step-000000010"]
    assert checkpoints.find_newest().name == "step-000000010"


def test_a_checkpoint_of_the_same_step_is_replaced(checkpoints: Checkpoints) -> None:
    save(checkpoints, 1)
    checkpoints.save(state(1), {"model": {"w": torch.ones(1)}}, OPTIMIZER)
    _, weights, _ = checkpoints.load(checkpoints.find_newest())
    assert weights.keys() == {"model"}
    assert names(checkpoints) == ["step-000000001"]


def test_checkpoints_of_another_owner_are_ignored(checkpoints: Checkpoints) -> None:
    save(checkpoints, 1)
    assert Checkpoints(checkpoints.folder, "another").find_newest() is None


@pytest.mark.parametrize(
    "changes", [{"format": FORMAT + 1}, {"format": None}, {"state": {"step": 2}}, {"more": 1}]
)
def test_a_state_of_another_shape_is_ignored(changes: dict, checkpoints: Checkpoints) -> None:
    save(checkpoints, 1, 2)
    path = checkpoints.folder / "step-000000002" / "state.json"
    content = json.loads(path.read_text("utf-8")) | changes
    del content["sha256"]
    path.write_text(json.dumps({"sha256": json_hash(content), **content}), "utf-8")
    assert checkpoints.find_newest().name == "step-000000001"


@pytest.mark.parametrize("name", ["state.json", "optimizer.pt", "model.safetensors"])
def test_a_checkpoint_with_a_changed_file_is_ignored(name: str, checkpoints: Checkpoints) -> None:
    save(checkpoints, 1, 2)
    path = checkpoints.folder / "step-000000002" / name
    path.write_bytes(path.read_bytes()[:-2] + b"xx")
    assert checkpoints.find_newest().name == "step-000000001"


def test_a_checkpoint_that_cannot_be_written_is_reported(
    checkpoints: Checkpoints, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(*arguments: object) -> None:
        try:
            raise OSError(28, "No space left on device")
        except OSError:
            raise RuntimeError("unexpected pos 64 vs 0")  # noqa: B904

    save(checkpoints, 1)
    monkeypatch.setattr(torch, "save", full)
    with pytest.raises(CannotWrite, match=r"step-000000002: No space left on device.* unchanged"):
        save(checkpoints, 2)
    assert names(checkpoints) == ["step-000000001"]


def test_all_checkpoints_are_removed(checkpoints: Checkpoints) -> None:
    save(checkpoints, 1, 2)
    checkpoints.remove()
    assert not checkpoints.folder.exists()


def test_weights_are_read_if_their_hash_is_right(tmp_path: Path) -> None:
    path = tmp_path / "a.safetensors"
    shared = torch.arange(6.0).reshape(2, 3)
    sha256 = write_weights(path, {"w": shared.T, "same": shared})  # a view, and shared memory
    assert sha256 == file_hash(path)
    assert torch.equal(read_weights(path, sha256)["w"], shared.T)
    with pytest.raises(UserError, match=r"damaged or was exchanged\. Train the run again"):
        read_weights(path, "0" * 64)
    path.unlink()
    with pytest.raises(UserError, match=r"a\.safetensors are missing; train the run again"):
        read_weights(path, sha256)


def test_other_files_are_not_read_as_weights(tmp_path: Path) -> None:
    torch.save({"w": torch.zeros(1)}, tmp_path / "a.safetensors")
    with pytest.raises(UserError, match=r"a\.safetensors is not a safetensors file"):
        read_tensors(tmp_path / "a.safetensors")
