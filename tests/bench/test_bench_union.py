"""The results of a folder are those of all its runs; nothing that is not ours is changed."""

import json
from pathlib import Path

import numpy as np
import pytest
from tiny_bench import DIGITS, POINTS, bench, record, results, suite_file, write_times

from dpn_plugin.data import load
from dpn_plugin.errors import UserError
from dpn_plugin.runs import Recipe, TrainConfig
from dpn_plugin.training import train


@pytest.fixture
def suite(tmp_path: Path) -> Path:
    return suite_file(tmp_path, POINTS)


@pytest.fixture
def out(suite: Path, tmp_path: Path) -> Path:
    bench(suite, tmp_path / "out", seeds=2)
    return tmp_path / "out"


@pytest.mark.parametrize(
    "fewer", [{"seeds": 1}, {"methods": ("baseline",)}, {"detectors": ("dpn-mi",)}]
)
def test_a_rerun_with_less_keeps_the_other_rows(fewer: dict, suite: Path, out: Path) -> None:
    before = write_times(out)
    assert bench(suite, out, **{"seeds": 2, **fewer}).steps == 0
    assert write_times(out) == before


def test_only_what_is_asked_for_on_request(suite: Path, out: Path) -> None:
    bench(suite, out, seeds=1, methods=("baseline",), detectors=("dpn-mi",), only_asked=True)
    table = results(out)
    assert set(table["method"]) == {"baseline"}
    assert set(table["seed"]) == {0}
    assert set(table["detector"]) == {"", "dpn-mi"}
    assert record(out)["detectors"] == ["dpn-mi"]


def test_more_methods_and_detectors_are_added(suite: Path, out: Path) -> None:
    before = results(out)
    bench(suite, out, seeds=1, methods=("oe",), detectors=("dpn-dent",))
    after = results(out)
    assert list(dict.fromkeys(after["method"])) == ["baseline", "dpn-minus", "oe"]
    kept = after[after["method"] != "oe"].reset_index(drop=True)
    assert kept.equals(before)
    assert set(after[after["method"] == "oe"]["detector"]) == {"", "dpn-dent"}
    assert record(out)["methods"] == ["baseline", "dpn-minus", "oe"]


def test_runs_on_other_test_data_are_left_out_with_a_warning(suite: Path, out: Path) -> None:
    fewer = {'split = "test"\n[train]': 'split = "test"\nlimit = 50\n[train]'}
    other = suite_file(suite.parent, POINTS, fewer)
    monitor = bench(other, out, seeds=1, methods=("oe",), detectors=("dpn-mi",))
    assert set(results(out)["method"]) == {"oe"}
    assert any("was evaluated on other test data" in each for each in monitor.warnings)


def test_a_method_is_trained_again_on_request(suite: Path, out: Path) -> None:
    before = (out / "results.csv").read_bytes()
    monitor = bench(suite, out, seeds=2, again=("dpn-minus",))
    assert monitor.steps == 2 * 16
    assert monitor.detectors == ["dpn-maxp", "dpn-mi", "mahalanobis"] * 2
    assert (out / "results.csv").read_bytes() == before


def test_a_detector_is_evaluated_again_on_request(suite: Path, out: Path) -> None:
    monitor = bench(suite, out, seeds=2, again=("dpn-mi",))
    assert (monitor.steps, monitor.detectors) == (0, ["dpn-mi"] * 4)
    with pytest.raises(UserError, match=r"Unknown method or detector 'dpn-mu'\. Did you mean"):
        bench(suite, out, again=("dpn-mu",))


@pytest.mark.parametrize("name", ["results.csv", "report.html", "leaderboard.csv", "photo.png"])
def test_a_folder_with_files_of_others_is_refused(name: str, suite: Path, tmp_path: Path) -> None:
    out = tmp_path / "mine"
    out.mkdir()
    (out / name).write_text("precious")
    with pytest.raises(UserError, match=rf"mine is not empty .* benchmark .*, but {name}\. Use"):
        bench(suite, out)
    assert [path.name for path in out.iterdir()] == [name]
    assert (out / name).read_text() == "precious"


def test_files_of_others_in_a_run_folder_survive_a_new_training(suite: Path, out: Path) -> None:
    run = out / "runs" / "mlp_synthetic" / "baseline" / "seed-0"
    (run / "checkpoints").mkdir()
    for name in ("notes.txt", "checkpoints/mine.pt"):
        (run / name).write_text("precious")
    (run / "classifier.safetensors").write_bytes(b"damaged")
    assert bench(suite, out, seeds=2).steps == 16
    for name in ("notes.txt", "checkpoints/mine.pt"):
        assert (run / name).read_text() == "precious"


def test_a_refused_benchmark_leaves_nothing_behind(suite: Path, tmp_path: Path) -> None:
    text = POINTS.replace("synthetic:gaussians-ood", "npz:nothing.npz")
    with pytest.raises(UserError, match=r"nothing\.npz"):
        bench(suite_file(tmp_path, text), tmp_path / "new" / "deep")
    assert not (tmp_path / "new").exists()


def test_a_trained_run_is_compared_by_its_data_not_by_its_spelling(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    digits = load("sklearn:digits", root=tmp_path, in_domain=True)
    arrays = {"images": digits.inputs[:, 0].numpy(), "labels": digits.labels.numpy()}
    np.savez(tmp_path / "digits.npz", **arrays)
    monkeypatch.chdir(tmp_path)
    config = TrainConfig(
        backbone="test_resnet",
        method="baseline",
        in_domain={"source": "npz:digits.npz", "classes": {"first": 5}},
        hold_back=0.2,
        channels=1,
        recipe=Recipe.named("small", epochs=1, image_size=8, drop_rate=0.2),
        stem="small",
    )
    train(config, tmp_path / "run", device="cpu", base=tmp_path)
    (tmp_path / "suites").mkdir()
    text = DIGITS.replace("sklearn:digits", "npz:../digits.npz")
    text = text.replace('[outliers]\nsource = "npz:../digits.npz"\nclasses = [5, 6]\n', "")
    other = suite_file(tmp_path / "suites", text)
    bench(other, tmp_path / "out", only_eval=tmp_path / "run")
    assert json.loads((tmp_path / "out" / "bench.json").read_text())["methods"] == ["baseline"]
    half = suite_file(tmp_path / "suites", text, {"{ first = 5 }": "{ first = 4 }"})
    with pytest.raises(UserError, match=r"trained on npz:digits.npz, or another part of it"):
        bench(half, tmp_path / "half", only_eval=tmp_path / "run")


def test_a_benchmark_of_another_suite_is_refused(suite: Path, out: Path, tmp_path: Path) -> None:
    other = tmp_path / "other.toml"
    other.write_text(suite.read_text())
    with pytest.raises(UserError, match=r"holds a benchmark of the suite 'mine', not of 'other'"):
        bench(other, out)
