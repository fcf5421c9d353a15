"""A network with given weights is evaluated as it is: nothing is trained, nothing is replaced."""

import json
from pathlib import Path

import numpy as np
import pytest
import timm
import torch
from safetensors.torch import load_file, save_file
from sklearn.datasets import load_digits
from tiny_bench import DIGITS, bench, results, suite_file
from tiny_runs import digits
from typer.testing import CliRunner

from dpn_plugin.backbones import find_class_mismatch
from dpn_plugin.cli import app
from dpn_plugin.errors import UserError
from dpn_plugin.runs import diagnose, open_run
from dpn_plugin.training import train

RUN = "runs/test_resnet/as-is/seed-0"
#: the suite with the size of the network's input, which is its own otherwise
SUITE = {
    "seeds = 1": "seeds = 3",
    "epochs = 2": "epochs = 2\nimage_size = 32",
    'stem = "small"\n': "",
}


@pytest.fixture(scope="module")
def weights(tmp_path_factory) -> Path:
    path = tmp_path_factory.mktemp("weights") / "five.safetensors"
    torch.manual_seed(0)
    model = timm.create_model("test_resnet", num_classes=5)
    save_file(model.state_dict(), path)
    return path


@pytest.fixture(scope="module")
def done(weights: Path, tmp_path_factory) -> tuple[Path, object]:
    folder = tmp_path_factory.mktemp("as-is")
    suite = suite_file(folder, DIGITS, SUITE)
    detectors = ("dpn-maxp", "mahalanobis", "vim", "knn")
    out = folder / "out"
    return out, bench(suite, out, methods=("as-is",), weights=weights, detectors=detectors)


def test_nothing_is_trained_and_there_is_one_seed(done, weights: Path) -> None:
    out, monitor = done
    assert monitor.runs == ["test_resnet as-is seed 0"]
    assert monitor.steps == 0
    kept, given = load_file(out / RUN / "classifier.safetensors"), load_file(weights)
    assert kept.keys() == given.keys()
    assert all(torch.equal(kept[name], given[name]) for name in given)
    assert not (out / RUN / "history.csv").exists()


def test_the_outputs_are_those_of_the_timm_model_with_its_own_preprocessing(
    done, weights: Path
) -> None:
    out, _ = done
    model = timm.create_model("test_resnet", num_classes=5)
    model.load_state_dict(load_file(weights))
    config, transform = timm.data.resolve_data_config(model=model), open_run(out / RUN).transform
    assert (transform.mean, transform.std) == (config["mean"], config["std"])
    assert (transform.interpolation, transform.crop) == (
        config["interpolation"],
        config["crop_pct"],
    )
    arrays = _stored(out, "near.seven")
    images = load_digits().images[load_digits().target == 7] / 16
    with torch.inference_mode():
        grey = torch.from_numpy(np.round(images * 255).astype(np.uint8))[:, None]
        logits = model.eval()(transform(grey)).numpy()
    np.testing.assert_allclose(np.sort(arrays["logits"], 0), np.sort(logits, 0), atol=1e-4)
    test = _stored(out, "in_domain_test")
    accuracy = float((test["logits"].argmax(1) == test["labels"]).mean())
    table = results(out)
    assert table[table.metric == "accuracy"].value.iloc[0] == pytest.approx(accuracy)


def _stored(out: Path, split: str) -> dict[str, np.ndarray]:
    for entry in (out / "store").glob("*/entry.json"):
        if json.loads(entry.read_text("utf-8"))["key"]["split"] == split:
            return {path.stem: np.load(path) for path in entry.parent.glob("*.npy")}
    raise AssertionError(split)


def test_every_detector_that_is_asked_for_has_figures(done) -> None:
    table = results(done[0])
    ood = table[(table.task == "ood") & (table.dataset == "seven")]
    assert set(ood.detector) == {"dpn-maxp", "mahalanobis", "vim", "knn"}
    assert set(table.seed) == {0}


def test_a_run_without_history_can_be_opened_diagnosed_and_reported(done) -> None:
    run = open_run(done[0] / RUN)
    assert run.record.networks["classifier"].selected is None
    assert any("guessing" in each for each in diagnose(run))  # the weights are random
    shown = CliRunner().invoke(app, ["report", str(done[0])])
    assert shown.exit_code == 0, shown.output
    assert "Traceback" not in shown.output


def test_as_is_beside_a_method_that_trains_is_another_network(weights: Path, tmp_path) -> None:
    changes = {**SUITE, "epochs = 2": "epochs = 1\nimage_size = 32"}
    suite = suite_file(tmp_path, DIGITS, changes)
    out, methods = tmp_path / "out", ("as-is", "baseline")
    done = bench(suite, out, methods=methods, weights=weights, seeds=1, limit=60)
    assert done.steps > 0
    as_is, trained = (
        open_run(out / "runs/test_resnet" / name / "seed-0").weights_hash for name in methods
    )
    assert as_is != trained


def test_without_weights_the_message_says_how_to_give_them(tmp_path) -> None:
    suite = suite_file(tmp_path, DIGITS)
    with pytest.raises(UserError, match="--pretrained or --weights FILE"):
        bench(suite, tmp_path / "out", methods=("as-is",))
    assert not (tmp_path / "out").exists()
    with pytest.raises(UserError, match="--pretrained or --weights FILE"):
        train(digits("as-is"), tmp_path / "run", device="cpu")
    assert not (tmp_path / "run").exists()


def test_another_number_of_classes_is_refused_with_both_numbers(weights: Path, tmp_path) -> None:
    suite = suite_file(tmp_path, DIGITS, {"first = 5": "first = 4", "epochs = 2": "epochs = 1"})
    options = ["--methods", "as-is", "--weights", str(weights), "--device", "cpu"]
    command = ["bench", str(suite), *options, "--out", str(tmp_path / "out")]
    done = CliRunner().invoke(app, command)
    assert done.exit_code == 2
    assert "has 5 classes and the in-domain data has 4" in done.output
    assert "random weights" not in done.output


def test_the_summary_of_a_run_that_was_not_trained(weights: Path, tmp_path) -> None:
    options = ["--method", "as-is", "--backbone", "test_resnet", "--weights", str(weights)]
    source = ["--in-domain", "sklearn:digits?classes=0-4", "--device", "cpu", "--image-size", "32"]
    done = CliRunner().invoke(app, ["train", *options, *source, "--out", str(tmp_path / "run")])
    assert done.exit_code == 0, done.output
    assert "classifier: used as it was given, without training" in done.output
    assert "history.csv" not in done.output


def test_as_is_has_no_weights_to_start_from() -> None:
    from dpn_plugin.runs import method_of

    for method, init_from in (("as-is", "baseline"), ("baseline", "as-is")):
        with pytest.raises(UserError, match="'as-is' trains nothing"):
            method_of(digits(method, init_from=init_from))


def test_classes_in_another_order_are_found_by_their_names() -> None:
    model = timm.create_model("test_resnet")
    synsets = timm.data.ImageNetInfo().label_names()
    assert find_class_mismatch(model, synsets) is None
    swapped = [synsets[1], synsets[0], *synsets[2:]]
    assert "class 0 of the data is 'n01443537'" in str(find_class_mismatch(model, swapped))
    assert find_class_mismatch(model, _short_names()) is None
    assert "'tench'" in str(find_class_mismatch(model, _short_names()[::-1]))
    assert find_class_mismatch(model, [f"class {index}" for index in range(1000)]) is None


def _short_names() -> list[str]:
    return [each.split(",")[0] for each in timm.data.ImageNetInfo().label_descriptions()]
