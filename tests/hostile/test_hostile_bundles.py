"""Bundles that are damaged, exchanged or forged are refused with the name of the file."""

import json
import shutil
from pathlib import Path

import pytest
import torch
from hostile import NAMES, dpn, forge_record, outcome, pickled
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from PIL import Image
from safetensors.torch import load_file, save_file
from tiny_runs import digits

from dpn_plugin._files import file_hash
from dpn_plugin.deploy import create_bundle, load_bundle
from dpn_plugin.training import train

FILES = ("classifier.safetensors", "calibration.safetensors", "state.safetensors", "bundle.json")
JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3),
    max_leaves=6,
)
KEYS = ["run", "rule", "detectors", "calibration_samples", "versions", "files", "format"]


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    root = tmp_path_factory.mktemp("made")
    in_domain = {"source": "sklearn:digits", "classes": {"first": 7}, "limit": 400}
    config = digits("dpn-minus", in_domain=in_domain)
    recipe = config.recipe.model_copy(update={"calibration": 0.2})
    run = train(config.model_copy(update={"recipe": recipe}), root / "run", device="cpu")
    return create_bundle(run, ["dpn-gaussian-kl", "knn"], root / "bundle", device="cpu")


@pytest.fixture
def bundle(made: Path, tmp_path: Path) -> Path:
    shutil.copytree(made, tmp_path / "bundle")
    return tmp_path / "bundle"


@pytest.fixture
def image(tmp_path: Path) -> Path:
    Image.new("L", (8, 8)).save(tmp_path / "a.png")
    return tmp_path / "a.png"


def reforge(bundle: Path, name: str, tensors: dict) -> None:
    """Replace a file and all hashes of it, as an attacker would."""
    save_file(tensors, bundle / name)
    files = json.loads((bundle / "bundle.json").read_text())["files"]
    forge_record(bundle / "bundle.json", files=files | {name: file_hash(bundle / name)})


@pytest.mark.parametrize("name", [*FILES, "fitting.safetensors"])
@pytest.mark.parametrize("how", ["flip", "truncate", "empty", "remove", "exchange"])
def test_damaged_and_exchanged_files_are_named(
    bundle: Path, image: Path, name: str, how: str
) -> None:
    path = bundle / name
    content = path.read_bytes()
    if how == "flip":
        path.write_bytes(content[:-9] + bytes([content[-9] ^ 1]) + content[-8:])
    elif how == "truncate":
        path.write_bytes(content[: len(content) // 2])
    elif how == "empty":
        path.write_bytes(b"")
    elif how == "remove":
        path.unlink()
    else:
        other = next(each for each in FILES if each != name)
        shutil.copy(bundle / other, path)
    done = dpn("score", "--bundle", bundle, image)
    assert done.exit_code == 2
    assert name in done.output


def test_a_pickle_is_not_read(bundle: Path, image: Path, tmp_path: Path) -> None:
    marker = tmp_path / "executed"
    for name in FILES[:3]:
        (bundle / name).write_bytes(pickled(marker))
        files = json.loads((bundle / "bundle.json").read_text())["files"]
        forge_record(bundle / "bundle.json", files=files | {name: file_hash(bundle / name)})
    assert dpn("score", "--bundle", bundle, image).exit_code == 2
    assert not marker.exists()


def test_thresholds_must_follow_from_the_calibration_scores(bundle: Path) -> None:
    detectors = json.loads((bundle / "bundle.json").read_text())["detectors"]
    detectors["knn"]["thresholds"] = [1e9]
    forge_record(bundle / "bundle.json", detectors=detectors)
    assert "thresholds of 'knn' in the bundle do not follow" in outcome(load_bundle, bundle, "cpu")


@pytest.mark.parametrize(
    "tensors",
    [
        {},
        {"predictions": torch.zeros(9, dtype=torch.int64)},
        {
            "scores.knn": torch.zeros(0),
            "scores.dpn-gaussian-kl": torch.zeros(0),
            "predictions": torch.zeros(0),
        },
        {
            "scores.knn": torch.zeros(3, 3),
            "scores.dpn-gaussian-kl": torch.zeros(3),
            "predictions": torch.zeros(3),
        },
        {
            "scores.knn": torch.full((50,), torch.nan),
            "scores.dpn-gaussian-kl": torch.zeros(50),
            "predictions": torch.zeros(50),
        },
    ],
)
def test_forged_calibrations_are_refused(bundle: Path, image: Path, tensors: dict) -> None:
    reforge(bundle, "calibration.safetensors", tensors)
    assert dpn("score", "--bundle", bundle, image).exit_code == 2


def test_forged_states_are_refused(bundle: Path, image: Path) -> None:
    state = load_file(bundle / "state.safetensors")
    reforge(bundle, "state.safetensors", {name: torch.zeros(1) for name in state})
    assert dpn("score", "--bundle", bundle, image).exit_code == 2
    reforge(bundle, "state.safetensors", {"x": torch.zeros(1)})
    assert dpn("score", "--bundle", bundle, image).exit_code == 2


@pytest.mark.parametrize("name", [*NAMES, "__class__", "__dict__"])
def test_names_of_files_and_attributes_are_restricted(bundle: Path, name: str) -> None:
    known = json.loads((bundle / "bundle.json").read_text())
    forge_record(bundle / "bundle.json", files=known["files"] | {name: "0"})
    assert "bundle.json is damaged: files" in outcome(
        load_bundle, bundle, "cpu"
    ) or name.startswith("__")
    known["detectors"]["knn"]["state"] = {name: 1}
    forge_record(bundle / "bundle.json", files=known["files"], detectors=known["detectors"])
    assert "bundle.json is damaged: detectors" in outcome(load_bundle, bundle, "cpu")


@settings(max_examples=40, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(key=st.sampled_from(KEYS), value=JSON)
def test_any_value_of_any_key_gives_a_result_or_a_message(
    key: str, value: object, bundle: Path, image: Path
) -> None:
    before = (bundle / "bundle.json").read_bytes()
    forge_record(bundle / "bundle.json", **{key: value})
    try:
        dpn("score", "--bundle", bundle, image)
    finally:
        (bundle / "bundle.json").write_bytes(before)


def test_other_versions_are_warned_about(bundle: Path) -> None:
    versions = json.loads((bundle / "bundle.json").read_text())["versions"]
    forge_record(bundle / "bundle.json", versions=versions | {"torch": "1.0", "gone": "2"})
    with pytest.warns(UserWarning, match=r"torch 1\.0 \(now .*gone 2 \(now missing\)"):
        load_bundle(bundle, "cpu")


def test_a_folder_without_a_bundle_is_named(tmp_path: Path, image: Path) -> None:
    done = dpn("score", "--bundle", tmp_path / "nowhere", image)
    assert "nowhere holds no bundle" in done.output
