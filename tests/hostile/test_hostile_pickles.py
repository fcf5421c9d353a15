"""A pickle is never read, wherever it is offered: its payload does not run."""

import json
import pickle
import zipfile
from pathlib import Path

import numpy as np
import pytest
import torch
from hostile import Payload, changed_json, dpn, pickled
from PIL import Image

from dpn_plugin.data import load
from dpn_plugin.errors import UserError
from dpn_plugin.files import file_hash
from dpn_plugin.outputs import Ingredients, OutputStore
from dpn_plugin.report import write_report
from dpn_plugin.sealed import sealed
from dpn_plugin.training import Recipe, TrainConfig, train


def test_the_payload_would_run(marker: Path) -> None:
    pickle.loads(pickled(marker))
    assert marker.exists()


@pytest.fixture
def picture(tmp_path: Path) -> Path:
    Image.new("L", (8, 8)).save(tmp_path / "a.png")
    return tmp_path / "a.png"


@pytest.mark.parametrize("honest", [True, False], ids=["hash kept", "hash forged"])
def test_weights(honest: bool, run: Path, picture: Path, marker: Path) -> None:
    weights = run / "classifier.safetensors"
    weights.write_bytes(pickled(marker))
    if not honest:
        networks = json.loads((run / "run.json").read_text())["networks"]
        networks["classifier"]["sha256"] = file_hash(weights)
        changed_json(run / "run.json", networks=networks)
    done = dpn("score", picture, "--run", run)
    assert done.exit_code == 2
    assert ("exchanged" if honest else "not a safetensors file") in done.output
    assert not marker.exists()


def test_held_out_outputs(run: Path, picture: Path, marker: Path) -> None:
    (run / "held_out.safetensors").write_bytes(pickled(marker))
    changed_json(run / "run.json", files={})
    done = dpn("score", picture, "--run", run, "--detector", "dpn-gaussian-kl")
    assert (done.exit_code, marker.exists()) == (2, False)
    assert "not a safetensors file" in done.output


@pytest.mark.parametrize("name", ["run.json", "classifier.safetensors", "held_out.safetensors"])
def test_a_torch_archive_in_a_run(name: str, run: Path, picture: Path, marker: Path) -> None:
    torch.save(Payload(marker), run / name)
    changed = dpn("score", picture, "--run", run, "--detector", "dpn-gaussian-kl")
    assert (changed.exit_code, marker.exists()) == (2, False)


class Stopped(Exception):
    """Training was stopped."""


class Stopper:
    """Ends a training after its first epoch, whose checkpoint stays."""

    def started(self, steps: int, done: int) -> None: ...

    def stepped(self, images: int, parts: dict[str, float]) -> None: ...

    def finished_epoch(self, row: dict[str, float]) -> None:
        self.after = getattr(self, "after", 0) + 1
        if self.after == 2:
            raise Stopped


def _raw(path: Path, marker: Path) -> None:
    path.write_bytes(pickled(marker))


def _archive(path: Path, marker: Path) -> None:
    torch.save({"state": {}, "param_groups": [Payload(marker)]}, path)


@pytest.mark.parametrize("spoil", [_raw, _archive])
@pytest.mark.parametrize("name", ["optimizer.pt", "model.safetensors"])
def test_a_checkpoint_with_forged_hashes(spoil, name: str, tmp_path: Path, marker: Path) -> None:
    config = TrainConfig(
        backbone="mlp_synthetic",
        method="baseline",
        in_domain={"source": "synthetic:gaussians", "limit": 60},
        recipe=Recipe.named("synthetic", epochs=3),
    )
    with pytest.raises(Stopped):
        train(config, tmp_path / "out", device="cpu", monitor=Stopper())
    checkpoints = sorted((tmp_path / "out" / "checkpoints").glob("*/step-*"))
    assert checkpoints
    for checkpoint in checkpoints:
        spoil(checkpoint / name, marker)
        state = json.loads((checkpoint / "state.json").read_text())
        state["files"][name] = file_hash(checkpoint / name)
        del state["sha256"]
        (checkpoint / "state.json").write_text(sealed(state))
    with pytest.raises(UserError, match="is not a checkpoint of this run"):
        train(config, tmp_path / "out", device="cpu")
    assert not marker.exists()


def _objects(marker: Path) -> np.ndarray:
    return np.array([Payload(marker)], dtype=object)


def test_an_npz_with_objects(tmp_path: Path, run: Path, marker: Path) -> None:
    path = tmp_path / "a.npz"
    for arrays in ({"images": _objects(marker)}, {"classes": _objects(marker)}):
        images = {"images": np.zeros((1, 8, 8), np.uint8)}
        np.savez(path, **(images | arrays))
        with pytest.raises(UserError, match="holds Python objects"):
            load("npz:a.npz", root=tmp_path)
        assert dpn("score", path, "--run", run).exit_code == 2
    assert not marker.exists()


@pytest.mark.parametrize("member", ["images", "images.npy", "images.pkl"])
def test_an_npz_whose_member_is_a_pickle(member: str, tmp_path: Path, marker: Path) -> None:
    with zipfile.ZipFile(tmp_path / "a.npz", "w") as archive:
        archive.writestr(member, pickled(marker))
    with pytest.raises(UserError):
        load("npz:a.npz", root=tmp_path)
    (tmp_path / "b.npz").write_bytes(pickled(marker))
    with pytest.raises(UserError, match="damaged or is not an"):
        load("npz:b.npz", root=tmp_path)
    assert not marker.exists()


@pytest.mark.parametrize("kind", ["objects", "pickle"])
def test_a_store_with_forged_hashes(kind: str, tmp_path: Path, marker: Path, caplog) -> None:
    store, made_of = OutputStore(tmp_path), Ingredients("w", "d", None, "test")
    store.write(made_of, [{"logits": torch.zeros(1, 3)}])
    path = tmp_path / made_of.key / "logits.npy"
    if kind == "objects":
        np.save(path, _objects(marker), allow_pickle=True)
    else:
        path.write_bytes(pickled(marker))
    entry = json.loads((path.parent / "entry.json").read_text())
    record = {"sha256": file_hash(path), "shape": [1], "dtype": "|O"}
    entry["arrays"]["logits"] = record
    (path.parent / "entry.json").write_text(json.dumps(entry))
    assert store.open(made_of.key) is None
    assert "damaged" in caplog.text
    assert not marker.exists()


def test_a_benchmark_of_pickles(tmp_path: Path, marker: Path) -> None:
    for name in ("bench.json", "results.csv", "runs/a/b/seed-0/evaluation.json"):
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_bytes(pickled(marker))
    with pytest.raises(UserError, match="damaged or not JSON"):
        write_report(tmp_path)
    assert not marker.exists()


def test_lsun_whose_cache_torchvision_would_unpickle(tmp_path: Path) -> None:
    with pytest.raises(UserError, match="Unknown torchvision data set 'LSUN'"):
        load("torchvision:LSUN/train", root=tmp_path)
