"""What cannot be done is refused with a reason, and the rest goes on."""

from pathlib import Path

import numpy as np
import pytest
from tiny_bench import DIGITS, POINTS, Told, bench, record, results, suite_file

from dpn_plugin.bench import Request, plan_for_run, run_plan
from dpn_plugin.errors import UserError
from dpn_plugin.plugins import registry

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


def test_a_backbone_that_cannot_serve_leaves_the_others_alone(tmp_path: Path) -> None:
    suite = suite_file(tmp_path, POINTS)
    told = bench(suite, tmp_path, backbones=("test_resnet", "mlp_synthetic"), methods=("baseline",))
    assert set(results(tmp_path)["backbone"]) == {"mlp_synthetic"}
    (row,) = record(tmp_path)["not_run"]
    assert (row["backbone"], row["method"], row["seed"]) == ("test_resnet", "baseline", 0)
    assert told.warnings == [f"test_resnet baseline seed 0 is not run: {row['reason']}"]
    with pytest.raises(UserError, match="Nothing could be run"):
        bench(suite, tmp_path / "none", backbones=("test_resnet",), methods=("baseline",))


def test_training_that_breaks_leaves_no_figures(tmp_path: Path) -> None:
    suite = suite_file(tmp_path, POINTS, {"epochs = 2": "epochs = 2\nlr = 1e30"})
    with pytest.raises(UserError, match=r"Nothing could be run. Training stopped at step"):
        bench(suite, tmp_path / "out")
    assert not (tmp_path / "out" / "results.csv").exists()


def test_a_detector_that_breaks_is_marked_and_tried_again(tmp_path: Path, monkeypatch) -> None:
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


def only_eval(suite: Path, run: Path, out: Path, **asked) -> Told:
    told = Told()
    plan = plan_for_run(Request(str(suite), **asked), run, out)
    run_plan(plan, out, root=out, monitor=told, device="cpu")
    return told


def test_a_trained_run_is_evaluated_and_left_as_it_is(tmp_path: Path) -> None:
    suite = suite_file(tmp_path, POINTS)
    bench(suite, tmp_path / "first", detectors=("dpn-mi",), methods=("dpn-minus",))
    run = tmp_path / "first" / "runs" / "mlp_synthetic" / "dpn-minus" / "seed-0"
    before = {path: path.stat().st_mtime_ns for path in run.iterdir()}
    told = only_eval(suite, run, tmp_path / "second", detectors=("dpn-mi", "knn"))
    assert (told.steps, told.detectors) == (0, ["dpn-mi", "knn"])
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
