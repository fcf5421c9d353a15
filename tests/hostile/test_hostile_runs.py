"""Records of untrusted runs: their names are never paths, and their types are checked."""

import json
from pathlib import Path

import pytest
import torch
from hostile import NAMES, dpn, forge_record, outcome
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from PIL import Image
from safetensors.torch import save_file

from dpn_plugin._files import file_hash
from dpn_plugin.runs import open_run

JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3),
    max_leaves=6,
)
KEYS = ["config", "networks", "finished", "classes", "input_shape", "transform", "files", "format"]


@pytest.fixture
def image(tmp_path: Path) -> Path:
    Image.new("L", (8, 8)).save(tmp_path / "a.png")
    return tmp_path / "a.png"


@pytest.mark.parametrize("absolute", [True, False])
def test_a_record_deletes_no_file_outside_of_its_folder(
    absolute: bool, run: Path, tmp_path: Path
) -> None:
    outside = tmp_path / "outside.safetensors"
    outside.write_text("kept")
    name = str(outside.with_suffix("")) if absolute else "../outside"
    networks = json.loads((run / "run.json").read_text())["networks"]
    forge_record(run / "run.json", networks={name: networks["classifier"]})
    network = ["--backbone", "mlp_synthetic", "--method", "baseline", "--epochs", 1, "--limit", 30]
    data = ["--in-domain", "synthetic:gaussians", "--device", "cpu"]
    assert dpn("train", *network, *data, "--out", run, "--force").exit_code == 0
    assert outside.read_text() == "kept"


@pytest.mark.parametrize("name", NAMES)
def test_names_of_networks_and_files_are_restricted(name: str, run: Path) -> None:
    for key in ("networks", "files"):
        known = json.loads((run / "run.json").read_text())
        entry = known["networks"]["classifier"] if key == "networks" else "0"
        before = (run / "run.json").read_bytes()
        forge_record(run / "run.json", **{key: {name: entry}})
        message = outcome(open_run, run)
        assert message.startswith(
            f"{run} holds no trained run: {run / 'run.json'} is damaged: {key}"
        )
        assert "String should match pattern" in message
        (run / "run.json").write_bytes(before)


@settings(max_examples=60, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(key=st.sampled_from(KEYS), value=JSON)
def test_any_value_of_any_key_gives_a_result_or_a_message(
    key: str, value: object, run: Path, image: Path
) -> None:
    before = (run / "run.json").read_bytes()
    forge_record(run / "run.json", **{key: value})
    try:
        dpn("score", image, "--run", run)
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
def test_impossible_values_are_refused(changes: dict, run: Path, image: Path) -> None:
    forge_record(run / "run.json", **changes)
    assert dpn("score", image, "--run", run).exit_code == 2


@pytest.mark.parametrize("tensors", [{}, {"x": torch.zeros(3)}])
def test_weights_of_another_network_are_refused(tensors: dict, run: Path, image: Path) -> None:
    save_file(tensors, run / "classifier.safetensors")
    networks = json.loads((run / "run.json").read_text())["networks"]
    networks["classifier"]["sha256"] = file_hash(run / "classifier.safetensors")
    forge_record(run / "run.json", networks=networks)
    done = dpn("score", image, "--run", run)
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
def test_other_held_out_files_give_a_result_or_a_message(
    tensors: dict, run: Path, image: Path
) -> None:
    held_out = run / "held_out.safetensors"
    save_file(tensors, held_out)
    forge_record(run / "run.json", files={held_out.name: file_hash(held_out)})
    dpn("score", image, "--run", run, "--detector", "dpn-gaussian-kl")
