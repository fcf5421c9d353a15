"""A benchmark that is run again does what is missing, and nothing else."""

import json
import resource
import shutil
from pathlib import Path

import numpy as np
import pytest
from safetensors.torch import load_file, save_file
from tiny_bench import POINTS, bench, record, results, suite_file, write_times

from dpn_plugin._files import file_hash
from dpn_plugin.backbones import Backbone
from dpn_plugin.bench import Request, make_plan
from dpn_plugin.errors import UserError
from dpn_plugin.evaluation import read_evaluation, read_scores
from dpn_plugin.metrics import ood_metrics
from dpn_plugin.outputs import OutputStore
from dpn_plugin.runs import read_run_record, write_run_record

RUN = Path("runs/mlp_synthetic/dpn-minus/seed-0")


@pytest.fixture(scope="module")
def first(tmp_path_factory: pytest.TempPathFactory) -> Path:
    out = tmp_path_factory.mktemp("first")
    bench(suite_file(out, POINTS), out)
    return out


@pytest.fixture
def copy(first: Path, tmp_path: Path) -> Path:
    shutil.copytree(first, tmp_path / "copy")
    return tmp_path / "copy"


def rerun(out: Path, **options):
    return bench(out / "mine.toml", out, **options)


def test_a_finished_benchmark_is_left_as_it_is(copy: Path, monkeypatch) -> None:
    before = write_times(copy)
    monkeypatch.setattr(Backbone, "forward", None)
    monkeypatch.setattr(Backbone, "outputs", None)
    monitor = rerun(copy)
    assert (monitor.steps, monitor.detectors, monitor.warnings) == (0, [], [])
    assert write_times(copy) == before


def test_the_stored_scores_of_every_detector_give_its_figures(copy: Path) -> None:
    known = results(copy)
    known = known[known["metric"].eq("auroc") & known["dataset"].eq("around")]
    assert len(known) == 6
    for row in known.to_dict("records"):
        folder = copy / f"runs/mlp_synthetic/{row['method']}/seed-0"
        scores = read_scores(OutputStore(copy / "store"), scores_key(folder, row["detector"]))
        found = ood_metrics(scores["in_domain_test"], scores["far.around"])
        assert found["auroc"] == pytest.approx(row["value"], abs=1e-12)


def scores_key(folder: Path, detector: str) -> str:
    return read_evaluation(folder).detectors[detector].scores


@pytest.mark.parametrize("damage", ["removed", "truncated"])
def test_a_detector_without_its_scores_is_evaluated_again(copy: Path, damage: str) -> None:
    before = results(copy)
    entry = copy / "store" / scores_key(copy / RUN, "mahalanobis")
    if damage == "removed":
        shutil.rmtree(entry)
    else:
        (entry / "scores.npy").write_bytes((entry / "scores.npy").read_bytes()[:-8])
    monitor = rerun(copy)
    assert (monitor.steps, monitor.detectors) == (0, ["mahalanobis"])
    assert entry.is_dir()
    assert results(copy).equals(before)


def test_a_folder_with_stored_outputs_alone_is_gone_on_with(copy: Path) -> None:
    """As after an interruption while the features of a frozen network were computed."""
    shutil.rmtree(copy / "runs")
    (copy / "bench.json").unlink()
    for path in [*copy.glob("*.csv"), *copy.glob("report*")]:
        path.unlink()
    assert {path.name for path in copy.iterdir()} == {"mine.toml", "store"}
    assert rerun(copy).steps > 0


def test_another_number_of_calibration_samples_changes_the_calibration_only(copy: Path) -> None:
    keys = ["method", "task", "detector", "dataset", "metric"]
    before = results(copy).set_index(keys).sort_index()
    suite_file(copy, POINTS, {"seeds = 1": "seeds = 1\ncalibration_samples = 150"})
    monitor = rerun(copy, methods=("dpn-minus",))
    assert monitor.steps == 0
    assert any("baseline/seed-0 has another calibration" in each for each in monitor.warnings)
    rerun(copy)
    after = results(copy).set_index(keys).sort_index()
    assert before.index.equals(after.index)
    changed = before[before["value"] != after["value"]].reset_index()
    assert set(changed["task"]) == {"calibration"}
    assert set(changed["metric"]) == {"rms_error", "ece"}  # with OOD samples
    assert set(changed["method"]) == {"baseline", "dpn-minus"}
    evaluation = json.loads((copy / RUN / "evaluation.json").read_text("utf-8"))
    assert evaluation["identity"]["calibration_samples"] == 150
    assert record(copy)["calibration_samples"] == 150


def test_one_more_detector_is_the_only_one_evaluated(copy: Path, tmp_path: Path) -> None:
    monitor = rerun(copy, detectors=("dpn-dent", "dpn-maxp"), only_asked=True)
    assert monitor.steps == 0
    assert monitor.detectors == ["dpn-dent"] * 2
    fresh = tmp_path / "fresh"
    bench(copy / "mine.toml", fresh, detectors=("dpn-dent", "dpn-maxp"))
    assert (copy / "results.csv").read_bytes() == (fresh / "results.csv").read_bytes()


def test_the_plan_shows_what_is_left_to_do(copy: Path) -> None:
    request = Request(str(copy / "mine.toml"), copy, detectors=("dpn-maxp", "dpn-dent"), seeds=2)
    runs = make_plan(request).runs
    assert [run.find_training_state() for run in runs] == ["reuse", "train", "reuse", "train"]
    missing = [run.find_missing(request.detectors) for run in runs]
    assert missing == [["dpn-dent"], ["dpn-maxp", "dpn-dent"]] * 2
    assert runs[0].find_missing(("dpn-maxp",), tune=True) == ["dpn-maxp"]


def test_other_options_do_not_replace_the_runs(copy: Path) -> None:
    with pytest.raises(
        UserError, match=r"another plan \(recipe.epochs: 2 -> 3\). Use another --out"
    ):
        rerun(copy, epochs=3)


def test_changed_weights_never_read_old_outputs(copy: Path) -> None:
    path = copy / RUN / "classifier.safetensors"
    save_file({name: -tensor for name, tensor in load_file(path).items()}, path)
    run = read_run_record(copy / RUN)
    assert run is not None
    changed = run.networks["classifier"].model_copy(update={"sha256": file_hash(path)})
    run.networks["classifier"] = changed
    write_run_record(copy / RUN, run)
    before = results(copy)
    monitor = rerun(copy)
    assert monitor.steps == 0
    assert monitor.detectors == ["dpn-maxp", "dpn-mi", "mahalanobis"]
    changed = results(copy)["value"] != before["value"]
    assert set(before["method"][changed]) == {"dpn-minus"}


def flip_bit(path: Path) -> None:
    content = bytearray(path.read_bytes())
    content[len(content) // 2] ^= 1
    path.write_bytes(content)


def truncate(path: Path) -> None:
    path.write_bytes(path.read_bytes()[:-20])


@pytest.mark.parametrize("damage", [flip_bit, truncate])
@pytest.mark.parametrize(
    ("pattern", "message"),
    [
        ("store/*/logits.npy", "Stored outputs are damaged and will be computed again"),
        ("store/*/entry.json", "Stored outputs are damaged and will be computed again"),
        (f"{RUN}/classifier.safetensors", "the run is trained again"),
        (f"{RUN}/evaluation.json", "The run is evaluated again"),
    ],
)
def test_damage_is_reported_and_repaired(pattern, message, damage, copy: Path, first: Path) -> None:
    for path in copy.glob(pattern):
        damage(path)
    monitor = rerun(copy)
    assert any(message in each for each in monitor.warnings)
    assert (copy / "results.csv").read_bytes() == (first / "results.csv").read_bytes()
    assert rerun(copy).warnings == []


def test_a_run_with_a_damaged_record_is_trained_again(copy: Path, first: Path) -> None:
    truncate(copy / RUN / "run.json")
    monitor = rerun(copy)
    assert "run.json is damaged: " in monitor.warnings[0]
    assert monitor.warnings[0].endswith("; the run is trained again.")
    assert monitor.steps == 16
    assert (copy / "results.csv").read_bytes() == (first / "results.csv").read_bytes()


@pytest.mark.parametrize("name", ["results.csv", "leaderboard.csv", "bench.json"])
def test_results_are_written_again(name: str, copy: Path, first: Path) -> None:
    truncate(copy / name)
    assert rerun(copy).detectors == []
    if name == "bench.json":
        ours, theirs = record(copy), record(first)
        assert ours | {key: theirs[key] for key in ("started", "sha256")} == theirs
    else:
        assert (copy / name).read_bytes() == (first / name).read_bytes()


def test_a_full_disk_does_not_count_as_the_failure_of_a_detector(
    first: Path, copy: Path, tmp_path: Path
) -> None:
    suite, out = copy / "mine.toml", tmp_path / "small"
    bench(suite, out, detectors=("dpn-maxp", "dpn-mi"))
    limits = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (150_000, limits[1]))
    try:  # mahalanobis is the only one that needs features of the training data
        with pytest.raises(UserError, match=r"Cannot write .*store.*: File too large"):
            bench(suite, out)
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, limits)
    assert bench(suite, out).detectors == ["mahalanobis"] * 2
    assert (out / "results.csv").read_bytes() == (first / "results.csv").read_bytes()


def drawings(path: Path, shift: int = 0) -> None:
    random = np.random.default_rng(0)
    images = random.integers(0, 255, (120, 8, 8), dtype=np.uint8) + np.uint8(shift)
    np.savez(path, images=images, labels=np.arange(120) % 4)


OWN = """
title = "Drawings"
detectors = ["dpn-maxp"]
methods = ["baseline"]
seeds = 1
[in_domain]
source = "npz:data/drawings.npz"
classes = { first = 3 }
[far.rest]
source = "npz:data/drawings.npz"
classes = { from = 3 }
[train]
backbone = "test_resnet"
stem = "small"
epochs = 1
"""


def test_relative_paths_start_from_the_suite_file(tmp_path: Path, monkeypatch) -> None:
    (tmp_path / "here" / "data").mkdir(parents=True)
    drawings(tmp_path / "here" / "data" / "drawings.npz")
    (tmp_path / "elsewhere").mkdir()
    monkeypatch.chdir(tmp_path / "elsewhere")
    suite = suite_file(tmp_path / "here", OWN)
    bench(Path("../here/mine.toml"), tmp_path / "out")
    found = record(tmp_path / "out")
    assert found["suite"] == "mine"
    assert found["sets"]["far"]["rest"] == {
        "source": "npz:data/drawings.npz",
        "selection": "classes=3-",
        "samples": 30,
        "dropped": 0,
        "damaged": 0,
        "classes": [],
    }
    assert found["in_domain_test"]["samples"] == 18
    drawings(tmp_path / "here" / "data" / "drawings.npz", shift=1)
    with pytest.raises(UserError, match=r"The data is not what the run in .* was trained on"):
        bench(suite, tmp_path / "out")


def test_tuning_is_done_on_held_out_data_and_recorded(tmp_path: Path) -> None:
    suite = suite_file(tmp_path, POINTS)
    monitor = bench(suite, tmp_path, detectors=("knn", "dpn-mi"), tune=True)
    assert monitor.detectors == ["knn", "dpn-mi"] * 2
    found = json.loads((tmp_path / RUN / "evaluation.json").read_text("utf-8"))["detectors"]
    assert found["knn"]["hyperparameters"].keys() == {"k"}
    assert found["dpn-mi"]["hyperparameters"] == {}
    path = tmp_path / "runs/mlp_synthetic/baseline/seed-0/evaluation.json"
    without_outliers = json.loads(path.read_text("utf-8"))["detectors"]["knn"]
    assert without_outliers["hyperparameters"] == {}
    assert without_outliers["rows"]
    assert bench(suite, tmp_path, detectors=("knn", "dpn-mi"), tune=True).detectors == []
