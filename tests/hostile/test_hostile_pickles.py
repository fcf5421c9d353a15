"""Pickles are never loaded, in whatever file they are: their payload does not run."""

import json
import pickle
import zipfile
from pathlib import Path

import numpy as np
import pytest
import torch
from hostile import Payload, dpn, forge_record, pickled
from PIL import Image

from dpn_plugin._files import file_hash
from dpn_plugin.data import load
from dpn_plugin.errors import UserError
from dpn_plugin.outputs import OutputKey, OutputStore
from dpn_plugin.report import write_report
from dpn_plugin.runs import EpochRecord, Recipe, TrainConfig
from dpn_plugin.training import SilentMonitor, train


def test_the_payload_works(marker: Path) -> None:
    pickle.loads(pickled(marker))
    assert marker.exists()


@pytest.fixture
def image(tmp_path: Path) -> Path:
    Image.new("L", (8, 8)).save(tmp_path / "a.png")
    return tmp_path / "a.png"


@pytest.mark.parametrize("forged", [False, True], ids=["hash kept", "hash forged"])
def test_weights(forged: bool, run: Path, image: Path, marker: Path) -> None:
    weights = run / "classifier.safetensors"
    weights.write_bytes(pickled(marker))
    if forged:
        networks = json.loads((run / "run.json").read_text())["networks"]
        networks["classifier"]["sha256"] = file_hash(weights)
        forge_record(run / "run.json", networks=networks)
    done = dpn("score", image, "--run", run)
    assert done.exit_code == 2
    assert ("not a safetensors file" if forged else "exchanged") in done.output
    assert not marker.exists()


def test_held_out_outputs(run: Path, image: Path, marker: Path) -> None:
    held_out = run / "held_out.safetensors"
    held_out.write_bytes(pickled(marker))
    forge_record(run / "run.json", files={held_out.name: file_hash(held_out)})
    done = dpn("score", image, "--run", run, "--detector", "dpn-gaussian-kl")
    assert (done.exit_code, marker.exists()) == (2, False)
    assert "not a safetensors file" in done.output


@pytest.mark.parametrize("name", ["run.json", "classifier.safetensors", "held_out.safetensors"])
def test_a_torch_archive_in_a_run(name: str, run: Path, image: Path, marker: Path) -> None:
    torch.save(Payload(marker), run / name)
    changed = dpn("score", image, "--run", run, "--detector", "dpn-gaussian-kl")
    assert (changed.exit_code, marker.exists()) == (2, False)


class Interrupted(Exception):
    """Training was interrupted."""


class InterruptAfterTwoEpochs(SilentMonitor):
    """Ends a training with two checkpoints."""

    def finished_epoch(self, epoch: EpochRecord) -> None:
        if epoch.epoch == 2:
            raise Interrupted


def _raw(path: Path, marker: Path) -> None:
    path.write_bytes(pickled(marker))


def _archive(path: Path, marker: Path) -> None:
    torch.save({"state": {}, "param_groups": [Payload(marker)]}, path)


@pytest.mark.parametrize("write", [_raw, _archive])
@pytest.mark.parametrize("name", ["optimizer.pt", "model.safetensors"])
def test_a_checkpoint_with_forged_hashes(write, name: str, tmp_path: Path, marker: Path) -> None:
    config = TrainConfig(
        backbone="mlp_synthetic",
        method="baseline",
        in_domain={"source": "synthetic:gaussians", "limit": 60},
        recipe=Recipe.named("synthetic", epochs=3),
    )
    with pytest.raises(Interrupted):
        train(config, tmp_path / "out", device="cpu", monitor=InterruptAfterTwoEpochs())
    checkpoints = sorted((tmp_path / "out" / "checkpoints").glob("*/step-*"))
    assert checkpoints
    for checkpoint in checkpoints:
        write(checkpoint / name, marker)
        files = json.loads((checkpoint / "state.json").read_text())["files"]
        files[name] = file_hash(checkpoint / name)
        forge_record(checkpoint / "state.json", files=files)
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
    store, key = OutputStore(tmp_path), OutputKey("w", "d", None, "test")
    store.write(key, [{"logits": torch.zeros(1, 3)}])
    path = tmp_path / key.hash / "logits.npy"
    if kind == "objects":
        np.save(path, _objects(marker), allow_pickle=True)
    else:
        path.write_bytes(pickled(marker))
    record = {"sha256": file_hash(path), "shape": [1], "dtype": "|O"}
    forge_record(path.parent / "entry.json", arrays={"logits": record})
    assert store.open(key.hash) is None
    assert f"damaged and will be computed again: {path}: " in caplog.text
    assert not marker.exists()


def test_a_benchmark_of_pickles(tmp_path: Path, marker: Path) -> None:
    for name in ("bench.json", "results.csv", "runs/a/b/seed-0/evaluation.json"):
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_bytes(pickled(marker))
    with pytest.raises(UserError, match=r"bench\.json is damaged: .*can't decode byte"):
        write_report(tmp_path)
    assert not marker.exists()


def test_lsun_whose_cache_torchvision_would_unpickle(tmp_path: Path) -> None:
    with pytest.raises(UserError, match="Unknown torchvision data set 'LSUN'"):
        load("torchvision:LSUN/train", root=tmp_path)
