"""What cannot be done is refused with a reason, and the other runs go on."""

from pathlib import Path

import numpy as np
import pytest
from tiny_bench import DIGITS, POINTS, RecordingMonitor, bench, record, results, suite_file

from dpn_plugin.bench import Request, make_plan
from dpn_plugin.bench.data import find_suite_data, load_suite_data
from dpn_plugin.data.overlap import shared_images
from dpn_plugin.errors import UserError
from dpn_plugin.plugins import registry
from dpn_plugin.runs import method_of
from dpn_plugin.training import load_training_data

DRAWINGS = '[outliers]\nsource = "npz:copy.npz"\n[near.seven]'


@pytest.mark.parametrize(
    ("old", "new", "words"),
    [
        ("classes = [8]", "classes = [18]", "has no class 18"),
        ("classes = [8]", 'classes = ["eight"]', "eight"),
        ("sklearn:photograph/flower", "sklearn:photograph/flour", "flower"),
        ("sklearn:photograph/flower", "skleam:flower", "Did you mean 'sklearn'"),
        ("options = { patches = 50, size = 16 }", "options = { pathes = 50 }", "'pathes'"),
        ('source = "sklearn:photograph/flower"', 'source = "npz:empty.npz"', "has no samples"),
        ('source = "sklearn:photograph/flower"', 'source = "npz:none.npz"', "was not found: there"),
        ("sklearn:photograph/flower", "torchvision:MNIST", "python -c"),
    ],
)  # fmt: skip
def test_data_that_is_not_there_stops_before_any_training(old, new, words, tmp_path: Path) -> None:
    empty = {"images": np.zeros((0, 8, 8), np.uint8), "labels": np.zeros(0, np.int64)}
    np.savez(tmp_path / "empty.npz", **empty)
    text = DIGITS.replace("options = { patches = 50, size = 16 }\n", "") if "npz" in new else DIGITS
    text = text.replace("options = { patches = 50, size = 16 }\n", "") if "MNIST" in new else text
    suite = suite_file(tmp_path, text, {old: new})
    with pytest.raises(UserError) as caught:
        bench(suite, tmp_path / "out")
    assert words in str(caught.value)
    assert not list((tmp_path / "out").rglob("run.json"))


def test_outliers_that_share_images_with_a_test_set_are_refused(tmp_path: Path) -> None:
    samples = registry.load("datasets", "sklearn")("digits", split=None, root=tmp_path)
    sevens = samples.inputs[samples.labels == 7][:40, 0].numpy()
    np.savez(tmp_path / "copy.npz", images=sevens, labels=np.zeros(40, np.int64))
    text = DIGITS.replace('[outliers]\nsource = "sklearn:digits"\nclasses = [5, 6]\n', "")
    suite = suite_file(tmp_path, text, {"[near.seven]": DRAWINGS})
    words = "40 of the 179 images of the OOD test set 'seven' are also in the outliers 'outliers'"
    with pytest.raises(UserError, match=words):
        bench(suite, tmp_path / "out")


def digits(classes: set[int]) -> tuple[np.ndarray, np.ndarray]:
    samples = registry.load("datasets", "sklearn")("digits", split=None, root=Path())
    kept = np.isin(samples.labels.numpy(), sorted(classes))
    return samples.inputs.numpy()[kept, 0], samples.labels.numpy()[kept]


def digits_file(path: Path, classes: set[int], part: slice, copied: int = 0) -> None:
    """Write digits, the first of them replaced by digits that are not in the part."""
    images, labels = digits(classes)
    rest = np.delete(np.arange(len(images)), np.arange(len(images))[part])
    positions = np.concatenate([rest[:copied], np.arange(len(images))[part][copied:]])
    np.savez(path, images=images[positions], labels=labels[positions])


IN_FILES = """[in_domain]
source = "npz:train.npz"
[in_domain_test]
source = "npz:test.npz"
"""
IN_SKLEARN = '[in_domain]\nsource = "sklearn:digits"\nclasses = { first = 5 }\n'


def test_test_images_that_were_trained_on_are_refused_or_counted(tmp_path: Path) -> None:
    suite = suite_file(tmp_path, DIGITS, {IN_SKLEARN: IN_FILES})
    digits_file(tmp_path / "train.npz", set(range(5)), slice(0, 700))
    digits_file(tmp_path / "test.npz", set(range(5)), slice(700, None), copied=3)
    with pytest.raises(UserError, match=r"3 of the 201 images .*'in_domain_test' .*Remove them"):
        bench(suite, tmp_path / "out")
    digits_file(tmp_path / "test.npz", set(range(5)), slice(700, None), copied=2)
    monitor = bench(suite, tmp_path / "out", epochs=1)
    (warning,) = [each for each in monitor.warnings if "in_domain_test" in each]
    assert "2 of the 201 images (1.0%) of 'in_domain_test'" in warning


@pytest.mark.parametrize("key", ["[outliers]", "[near.seven]"])
def test_ood_data_with_in_domain_images_is_refused(key: str, tmp_path: Path) -> None:
    digits_file(tmp_path / "copy.npz", {3}, slice(0, 40))
    text = DIGITS.replace('[outliers]\nsource = "sklearn:digits"\nclasses = [5, 6]\n', "")
    name = key.strip("[]").split(".")[-1]
    part = '[near.seven]\nsource = "sklearn:digits"\nclasses = [7]\n'
    suite = suite_file(tmp_path, text.replace(part, "") + f'{key}\nsource = "npz:copy.npz"\n')
    words = rf"of the 40 images of the .*'{name}' are also in the in-domain data 'in_domain'"
    with pytest.raises(UserError, match=words):
        bench(suite, tmp_path / "out")


def test_held_out_images_are_compared_with_the_tests(tmp_path: Path) -> None:
    """What a run holds out of its training data and outliers is not in a test set."""
    suite = suite_file(tmp_path, DIGITS)
    plan = make_plan(Request(str(suite), tmp_path, methods=("oe",)))
    data = load_suite_data(plan)
    config = plan.runs[0].config
    parts = load_training_data(config, method_of(config), data.datasets).parts
    for test in [data.in_domain_test, *data.groups["near"].values()]:
        assert [shared_images(each, test) for each in parts.values()] == [0, 0, 0, 0]
    for part in (parts["held_out"], parts["held_out_outliers"]):
        images = part.inputs[:, 0].numpy()
        np.savez(tmp_path / "copy.npz", images=images, labels=np.zeros(len(images), np.int64))
        text = {'source = "pytorch_ood:UniformNoise/60"': 'source = "npz:copy.npz"'}
        with pytest.raises(UserError, match=f"{len(images)} of the {len(images)} images"):
            bench(suite_file(tmp_path, DIGITS, text), tmp_path / "out")


MISSING = {
    'source = "pytorch_ood:UniformNoise/60"': 'source = "npz:none.npz"',
    'source = "sklearn:photograph/flower"\noptions = { patches = 50, size = 16 }':
        'source = "torchvision:KMNIST"',
}  # fmt: skip


def test_all_missing_sets_are_in_one_message_and_nothing_is_decoded(
    tmp_path: Path, monkeypatch
) -> None:
    outliers = '[outliers]\nsource = "sklearn:digits"\nclasses = [5, 6]'
    changes = {**MISSING, outliers: '[outliers]\nsource = "folder:nothing"'}
    suite = suite_file(tmp_path, DIGITS, changes)
    monkeypatch.setattr("dpn_plugin.data.loading.fit_images", lambda *_: pytest.fail("loaded"))
    with pytest.raises(UserError) as caught:
        bench(suite, tmp_path / "out")
    title, *lines = str(caught.value).splitlines()
    assert title == "3 data sets cannot be loaded:"
    keys = ["outliers: folder:nothing", "far.noise: npz:none.npz", "far.flower: torchvision:KMNIST"]
    assert [line.split(" was not found")[0] for line in lines] == [f"- {key}" for key in keys]
    assert not list((tmp_path / "out").rglob("run.json"))


def test_missing_test_sets_can_be_skipped(tmp_path: Path) -> None:
    suite = suite_file(tmp_path, DIGITS, MISSING)
    with pytest.raises(UserError, match="With --skip-missing, the benchmark goes on without"):
        bench(suite, tmp_path / "out")
    plan = make_plan(Request(str(suite), tmp_path / "out", skip_missing=True))
    data = load_suite_data(plan, plan.skip_missing)
    assert list(data.skipped) == ["noise", "flower"]
    assert "npz:none.npz was not found" in data.skipped["noise"]
    assert [*data.sets] == ["in_domain_test", "near.seven", "near.eight"]
    assert find_suite_data(plan, skip_missing=True) == data.skipped
    bench(suite, tmp_path / "out", skip_missing=True)
    found = {"seven", "eight", "near"}
    assert set(results(tmp_path / "out")["dataset"]) - {""} == found


def test_workers_skip_what_the_first_process_skips(tmp_path: Path) -> None:
    plan = make_plan(Request(str(suite_file(tmp_path, DIGITS)), tmp_path, skip_missing=True))
    reduced = plan.without_sets(["noise"])
    assert (reduced.skip_missing, list(reduced.suite.far)) == (False, ["flower"])


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"classes = [5, 6]": "classes = [5, 16]"}, "outliers: sklearn:digits has no class 16"),
        ({"classes = [8]": "classes = [18]"}, "near.eight: sklearn:digits has no class 18"),
        ({"[near.seven]": "[far.seven]", "[near.eight]": "[far.eight]",
          'source = "sklearn:digits"\nclasses = [7]': 'source = "npz:7.npz"',
          'source = "sklearn:digits"\nclasses = [8]': 'source = "npz:8.npz"', **MISSING},
         "4 data sets cannot be loaded"),
        ({IN_SKLEARN: IN_FILES}, "in_domain: npz:train.npz was not found"),
    ],
    ids=["class of the outliers", "class of a test", "no test left", "in-domain data"],
)  # fmt: skip
def test_what_is_needed_or_wrong_is_not_skipped(changes, words, tmp_path: Path) -> None:
    with pytest.raises(UserError) as caught:
        bench(suite_file(tmp_path, DIGITS, changes), tmp_path / "out", skip_missing=True)
    assert words in str(caught.value)
    assert "--skip-missing" not in str(caught.value)


def test_a_backbone_that_cannot_serve_leaves_the_others_alone(tmp_path: Path) -> None:
    suite = suite_file(tmp_path, POINTS)
    monitor = bench(
        suite, tmp_path, backbones=("test_resnet", "mlp_synthetic"), methods=("baseline",)
    )
    assert set(results(tmp_path)["backbone"]) == {"mlp_synthetic"}
    (row,) = record(tmp_path)["not_run"]
    assert (row["backbone"], row["method"], row["seed"]) == ("test_resnet", "baseline", 0)
    assert monitor.warnings == [f"test_resnet baseline seed 0 is not run: {row['reason']}"]
    with pytest.raises(UserError, match="Nothing could be run"):
        bench(suite, tmp_path / "none", backbones=("test_resnet",), methods=("baseline",))


def test_training_that_diverges_gives_no_results(tmp_path: Path) -> None:
    suite = suite_file(tmp_path, POINTS, {"epochs = 2": "epochs = 2\nlr = 1e30"})
    with pytest.raises(UserError, match=r"Nothing could be run. Training stopped at step"):
        bench(suite, tmp_path / "out")
    assert not (tmp_path / "out" / "results.csv").exists()


def test_a_detector_that_fails_is_recorded_and_tried_again(tmp_path: Path, monkeypatch) -> None:
    from dpn_plugin.detectors import MutualInformation

    suite = suite_file(tmp_path, POINTS)
    with monkeypatch.context() as broken:
        broken.setattr(MutualInformation, "predict_logits", lambda self, logits: 1 / 0)
        bench(suite, tmp_path, methods=("baseline",))
    (row,) = record(tmp_path)["not_run"]
    assert (row["detector"], row["reason"]) == (
        "dpn-mi",
        "failed: ZeroDivisionError: division by zero",
    )
    assert "dpn-mi" not in set(results(tmp_path)["detector"])
    assert bench(suite, tmp_path, methods=("baseline",)).detectors == ["dpn-mi"]
    assert record(tmp_path)["not_run"] == []


def only_eval(suite: Path, run: Path, out: Path, **options) -> RecordingMonitor:
    return bench(suite, out, only_eval=run, **options)


def test_a_trained_run_is_evaluated_and_left_as_it_is(tmp_path: Path) -> None:
    suite = suite_file(tmp_path, POINTS)
    bench(suite, tmp_path / "first", detectors=("dpn-mi",), methods=("dpn-minus",))
    run = tmp_path / "first" / "runs" / "mlp_synthetic" / "dpn-minus" / "seed-0"
    before = {path: path.stat().st_mtime_ns for path in run.iterdir()}
    monitor = only_eval(suite, run, tmp_path / "second", detectors=("dpn-mi", "knn"))
    assert (monitor.steps, monitor.detectors) == (0, ["dpn-mi", "knn"])
    first, second = results(tmp_path / "first"), results(tmp_path / "second")
    assert first.equals(second[second["detector"] != "knn"].reset_index(drop=True))
    assert {path: path.stat().st_mtime_ns for path in run.iterdir()} == before
    assert only_eval(suite, run, tmp_path / "second", detectors=("dpn-mi",)).detectors == []


def test_a_run_is_not_tested_on_other_classes_or_on_its_own_outliers(tmp_path: Path) -> None:
    suite = suite_file(tmp_path, POINTS)
    bench(suite, tmp_path / "first", methods=("dpn-minus",))
    run = tmp_path / "first" / "runs" / "mlp_synthetic" / "dpn-minus" / "seed-0"
    (tmp_path / "digits").mkdir()
    digits = suite_file(tmp_path / "digits", DIGITS)
    with pytest.raises(UserError, match=r"trained on synthetic:gaussians, .* about sklearn:digits"):
        only_eval(digits, run, tmp_path / "out")
    text = POINTS.replace("[outliers]", "[near.close]").replace("limit = 100\n", "")
    with pytest.raises(UserError, match=r"test set 'close' .* come from one data set"):
        only_eval(suite_file(tmp_path, text), run, tmp_path / "out")
    with pytest.raises(UserError, match="holds no trained run"):
        only_eval(suite, tmp_path, tmp_path / "out")
