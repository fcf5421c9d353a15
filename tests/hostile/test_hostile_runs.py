"""The record of a run by somebody else: its names are no paths, its types are checked."""

import json
from pathlib import Path

import pytest
import torch
from hostile import NAMES, changed_json, dpn, outcome
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from PIL import Image
from safetensors.torch import save_file

from dpn_plugin.files import file_hash
from dpn_plugin.training import open_run

JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3),
    max_leaves=6,
)
KEYS = ["config", "networks", "finished", "classes", "input_shape", "transform", "files", "format"]


@pytest.fixture
def picture(tmp_path: Path) -> Path:
    Image.new("L", (8, 8)).save(tmp_path / "a.png")
    return tmp_path / "a.png"


@pytest.mark.parametrize("absolute", [True, False])
def test_a_record_deletes_no_file_elsewhere(absolute: bool, run: Path, tmp_path: Path) -> None:
    victim = tmp_path / "victim.safetensors"
    victim.write_text("mine")
    name = str(victim.with_suffix("")) if absolute else "../victim"
    networks = json.loads((run / "run.json").read_text())["networks"]
    changed_json(run / "run.json", networks={name: networks["classifier"]})
    words = ["--backbone", "mlp_synthetic", "--method", "baseline", "--epochs", 1, "--limit", 30]
    data = ["--in-domain", "synthetic:gaussians", "--device", "cpu"]
    assert dpn("train", *words, *data, "--out", run, "--force").exit_code == 0
    assert victim.read_text() == "mine"


@pytest.mark.parametrize("name", NAMES)
def test_names_of_networks_and_files(name: str, run: Path) -> None:
    for key in ("networks", "files"):
        known = json.loads((run / "run.json").read_text())
        entry = known["networks"]["classifier"] if key == "networks" else "0"
        before = (run / "run.json").read_bytes()
        changed_json(run / "run.json", **{key: {name: entry}})
        assert "cannot be read as the record" in outcome(open_run, run)
        (run / "run.json").write_bytes(before)


@settings(max_examples=60, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(key=st.sampled_from(KEYS), value=JSON)
def test_any_value_of_any_key(key: str, value: object, run: Path, picture: Path) -> None:
    before = (run / "run.json").read_bytes()
    changed_json(run / "run.json", **{key: value})
    try:
        dpn("score", picture, "--run", run)
    finally:
        (run / "run.json").write_bytes(before)


@pytest.mark.parametrize(
    "changes",
    [
        {"input_shape": [3, 10**9, 10**9]},
        {"input_shape": [8, 8]},
        {"input_shape": []},
        {"classes": []},
        {"classes": ["a"] * 7},
        {"transform": {"mean": [], "std": [], "size": [8, 8]}},
        {"transform": {"mean": [0.5], "std": [0.0], "size": [10**9, 10**9]}},
        {"networks": {}},
    ],
    ids=str,
)
def test_figures_that_cannot_be(changes: dict, run: Path, picture: Path) -> None:
    changed_json(run / "run.json", **changes)
    assert dpn("score", picture, "--run", run).exit_code == 2


@pytest.mark.parametrize("tensors", [{}, {"x": torch.zeros(3)}])
def test_weights_of_another_network(tensors: dict, run: Path, picture: Path) -> None:
    save_file(tensors, run / "classifier.safetensors")
    networks = json.loads((run / "run.json").read_text())["networks"]
    networks["classifier"]["sha256"] = file_hash(run / "classifier.safetensors")
    changed_json(run / "run.json", networks=networks)
    done = dpn("score", picture, "--run", run)
    assert (done.exit_code, "are not those of" in done.output) == (2, True)


@pytest.mark.parametrize(
    "tensors",
    [
        {},
        {"logits": torch.zeros(4, 3)},
        {"logits": torch.zeros(4, 3), "labels": torch.zeros(9, dtype=torch.int64)},
        {"logits": torch.zeros(4, 9), "labels": torch.zeros(4, dtype=torch.int64)},
        {"logits": torch.zeros(4, 3, dtype=torch.int64), "labels": torch.zeros(4)},
        {"logits": torch.full((4, 3), torch.nan), "labels": torch.zeros(4, dtype=torch.int64)},
        {"logits": torch.zeros(4, 3), "labels": torch.full((4,), 99)},
    ],
)
def test_held_out_outputs_that_are_none(tensors: dict, run: Path, picture: Path) -> None:
    save_file(tensors, run / "held_out.safetensors")
    changed_json(run / "run.json", files={})
    dpn("score", picture, "--run", run, "--detector", "dpn-gaussian-kl")
