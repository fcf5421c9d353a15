"""The evidential family by name: trained, on frozen features too, and scored as by its authors."""

from pathlib import Path

import pandas as pd
import pytest
import timm
import torch
from safetensors.torch import load_file, save_file
from sklearn.datasets import load_digits
from tiny_bench import DIGITS, POINTS, bench, record, results, suite_file
from tiny_runs import digits, points
from torch.nn.functional import interpolate

from dpn_plugin._files import file_hash
from dpn_plugin.bench import Request, count_trainings, make_plan
from dpn_plugin.detectors import create_detector
from dpn_plugin.errors import UserError
from dpn_plugin.losses import FlexibleEvidentialLoss
from dpn_plugin.runs import Predictor, open_run
from dpn_plugin.training import train

#: method: its own score, or the one that its authors use
SCORES = {
    "r-edl": "dpn-maxp",
    "re-edl": "dpn-maxp",
    "i-edl": "dpn-precision",
    "belief-matching": "dpn-maxp",
    "daedl": "daedl",
    "f-edl": "total-variance",
    "ensemble-distillation": "dpn-mi",
}
DETECTORS = f"detectors = {sorted({*SCORES.values()})}"
#: a distillation needs more epochs; it is tested on features, which take less time
TRAINED = tuple(method for method in SCORES if method != "ensemble-distillation")
METHODS = ("baseline", "deep-ensemble", *SCORES)


@pytest.fixture(scope="module")
def of_images(tmp_path_factory) -> Path:
    out = tmp_path_factory.mktemp("images")
    changes = {"epochs = 2": "epochs = 6", 'detectors = ["dpn-maxp", "dpn-mi"]': DETECTORS}
    bench(suite_file(out, DIGITS, changes), out / "out", methods=TRAINED)
    return out / "out"


@pytest.fixture(scope="module")
def of_features(tmp_path_factory) -> Path:
    out = tmp_path_factory.mktemp("frozen")
    weights = out / "base.safetensors"
    torch.manual_seed(0)
    model = timm.create_model("test_resnet", num_classes=9)
    images = torch.from_numpy(load_digits().images[:300] / 8 - 1).float()[:, None]
    with torch.no_grad():
        for _ in range(30):  # random layers with fitted batch norms give features that separate
            model(interpolate(images.expand(-1, 3, -1, -1), (32, 32), mode="bilinear"))
    save_file(model.state_dict(), weights)
    changes = {
        "epochs = 2": "epochs = 20\nlr = 0.02\nimage_size = 32\nfreeze = true",
        'stem = "small"\n': "",
        'detectors = ["dpn-maxp", "dpn-mi"]': DETECTORS,
    }
    bench(suite_file(out, DIGITS, changes), out / "out", methods=METHODS, weights=weights)
    return out / "out"


def figure(table: pd.DataFrame, **wanted: str) -> float:
    for column, value in wanted.items():
        table = table[table[column] == value]
    assert len(table) == 1
    return float(table.value.iloc[0])


@pytest.mark.parametrize("method", TRAINED)
def test_every_method_classifies_digits_and_detects_others(of_images: Path, method: str) -> None:
    table = results(of_images)
    assert figure(table, method=method, metric="accuracy") > 0.8
    detected = {"detector": SCORES[method], "dataset": "near", "task": "ood", "metric": "auroc"}
    assert figure(table, method=method, **detected) > 0.7


@pytest.mark.parametrize("method", SCORES)
def test_every_method_trains_a_head_on_frozen_features(of_features: Path, method: str) -> None:
    table = results(of_features)
    assert figure(table, method=method, metric="accuracy") > 0.4  # the features are random
    detected = {"detector": SCORES[method], "dataset": "near", "task": "ood", "metric": "auroc"}
    assert figure(table, method=method, **detected) > 0.55


def test_every_detector_runs_on_every_method_that_is_not_averaged(of_features: Path) -> None:
    assert {each["method"] for each in record(of_features)["not_run"]} == {"deep-ensemble"}


def test_a_distillation_copies_the_networks_of_the_deep_ensemble(of_features: Path) -> None:
    runs = of_features / "runs" / "test_resnet"
    student = open_run(runs / "ensemble-distillation" / "seed-0").record.networks
    assert list(student) == ["member-0", "member-1", "member-2", "classifier"]
    for name in ("member-1", "member-2"):
        assert student[name].shared_from.endswith("deep-ensemble/seed-0")
        folders = (
            runs / method / "seed-0" for method in ("ensemble-distillation", "deep-ensemble")
        )
        assert len({file_hash(folder / f"{name}.safetensors") for folder in folders}) == 1
    assert student["classifier"].shared_from == ""


def test_the_plan_counts_the_shared_networks(tmp_path: Path) -> None:
    methods = ("deep-ensemble", "ensemble-distillation")
    plan = make_plan(Request(str(suite_file(tmp_path, POINTS)), tmp_path / "out", methods=methods))
    assert count_trainings(plan.runs) == (7, 4)


@pytest.mark.parametrize("suite", ["of_images", "of_features"])
def test_a_flexible_network_has_2k_plus_1_outputs_and_k_logits(suite: str, request) -> None:
    folder = next((request.getfixturevalue(suite) / "runs").iterdir()) / "f-edl" / "seed-0"
    run = open_run(folder)
    weights = load_file(folder / "classifier.safetensors")
    assert 2 * run.num_classes + 1 in {len(each) for each in weights.values() if each.ndim}
    predictor = Predictor(run)
    x = torch.randn(4, *predictor.classifier.input_size)
    with torch.inference_mode():
        raw, outputs = predictor.classifier.model(x), predictor.outputs(x)
        loss = FlexibleEvidentialLoss(run.num_classes)
        assert predictor.classifier.num_classes == run.num_classes
        torch.testing.assert_close(outputs["logits"], loss.log_concentrations(raw))
        torch.testing.assert_close(predictor.classifier(x), outputs["logits"])
        parts = predictor.outputs_of_features(outputs["features"])
        torch.testing.assert_close(parts["logits"], outputs["logits"])
        alpha, p, tau = raw.split([run.num_classes, run.num_classes, 1], dim=1)
        alpha, p, tau = alpha.exp(), p.softmax(1), tau.exp().log1p()
        mean = (alpha + tau * p) / (alpha.sum(1, keepdim=True) + tau)
    torch.testing.assert_close(outputs["logits"].softmax(1), mean)


@pytest.mark.parametrize("backbone", ["test_resnet", "test_vit"])
@pytest.mark.parametrize("method", ["f-edl", "ensemble-distillation"])
def test_networks_of_any_family_can_be_scored(backbone: str, method: str, tmp_path: Path) -> None:
    run = train(digits(method, backbone=backbone), tmp_path, device="cpu")
    predictor = Predictor(run)
    x = torch.randn(2, *predictor.classifier.input_size)
    assert predictor(x).shape == (2, 7)
    if method == "f-edl":
        with pytest.raises(UserError, match=r"needs a linear head, and that of .* with a readout"):
            create_detector("vim", predictor.classifier)


@pytest.mark.parametrize(
    ("method", "settings", "message"),
    [
        ("i-edl", {"options": {"fisher_wieght": 1}}, "Did you mean 'fisher_weight'"),
        ("r-edl", {"options": {"lambda2": 0}}, "lambda2 must be a finite number above 0, not 0"),
        ("f-edl", {"options": {"evidence": "exp"}}, "no option 'evidence'"),
        ("f-edl", {"init_from": "baseline"}, "'f-edl' and 'baseline' differ in the number of out"),
        ("ensemble-distillation", {"options": {"members": 1}}, "2 or more, not 1"),
        ("ensemble-distillation", {"options": {"member": 4}}, "Did you mean 'members'"),
        ("belief-matching", {"options": {"members": 2}}, "has no option 'members'"),
        ("baseline", {"init_from": "ensemble-distillation"}, "trains 4 networks"),
    ],
)
def test_bad_options_are_refused_before_the_training(method, settings, message, tmp_path) -> None:
    with pytest.raises((UserError, TypeError), match=message):
        train(points(method, **settings), tmp_path / "out", device="cpu")
    assert not (tmp_path / "out").exists()


def test_the_members_of_a_distillation_are_an_option(tmp_path: Path) -> None:
    run = train(points("ensemble-distillation", options={"members": 2}), tmp_path, device="cpu")
    assert list(run.record.networks) == ["member-0", "member-1", "classifier"]
    assert run.method.networks[0].loss_options == {"members": 2}
