"""Heads on frozen features: trained in seconds, evaluated like whole networks."""

import json
from pathlib import Path

import numpy as np
import pytest
import timm
import torch
from safetensors.torch import load_file, save_file
from tiny_bench import DIGITS, bench, record, results, suite_file, write_base_weights
from tiny_runs import digits

from dpn_plugin._distributed import Processes
from dpn_plugin.backbones import WeightsFile
from dpn_plugin.data import DatasetCache, Samples, SourceSpec
from dpn_plugin.errors import UserError
from dpn_plugin.runs import Predictor, Recipe, open_run
from dpn_plugin.training import TrainingData, train
from dpn_plugin.training.paired_batches import PairedBatches

CHANGES = {
    "epochs = 2": "epochs = 20\nlr = 0.02\nimage_size = 32\nfreeze = true",
    'stem = "small"\n': "",
    'methods = ["baseline"]': 'methods = ["baseline", "oe", "dpn-minus", "mcdp", "deep-ensemble", '
    '"binary", "edl"]',
    '"dpn-mi"]': '"dpn-mi", "knn", "mahalanobis-pp", "vim", "react", "gram", "odin"]',
}
RUNS = "runs/test_resnet"


@pytest.fixture(scope="module")
def weights(tmp_path_factory) -> Path:
    return write_base_weights(tmp_path_factory.mktemp("weights"))


@pytest.fixture(scope="module")
def done(weights: Path, tmp_path_factory) -> tuple[Path, object]:
    folder = tmp_path_factory.mktemp("frozen")
    out = folder / "out"
    return out, bench(suite_file(folder, DIGITS, CHANGES), out, weights=weights)


def frozen(weights: Path, method: str = "baseline", **recipe):
    settings = {"epochs": 2, "batch_size": 32, "outlier_batch_size": 16, "freeze": True, **recipe}
    return digits(
        method,
        weights=WeightsFile.at(weights),
        network_size=32,
        recipe=Recipe.named("small", **settings),
    )


def test_all_methods_have_figures_for_all_detectors(done) -> None:
    out, _ = done
    assert record(out)["not_run"] == [] or all(
        each["method"] in ("mcdp", "deep-ensemble") for each in record(out)["not_run"]
    )
    table = results(out)
    of_baseline = table[(table.method == "baseline") & (table.task == "ood")]
    assert len(set(of_baseline.detector)) == 8
    assert set(table.method) == set(record(out)["methods"])
    accuracy = table[(table.method == "baseline") & (table.metric == "accuracy")].value.iloc[0]
    assert accuracy > 0.5  # random features of digits are better than guessing, 0.2


def test_run_folders_hold_heads_alone_and_refer_to_the_base_by_hash(done, weights: Path) -> None:
    out, _ = done
    head = load_file(out / RUNS / "baseline/seed-0/classifier.safetensors")
    assert {name: tuple(each.shape) for name, each in head.items()} == {
        "head.weight": (5, 96),
        "head.bias": (5,),
    }
    bases = {open_run(path).record.base for path in (out / RUNS).glob("*/seed-0")}
    assert len(bases) == 1
    assert len(bases.pop()) == 64


def test_features_of_every_set_are_stored_once_for_all_runs(done) -> None:
    out, _ = done
    keys = [
        json.loads(path.read_text("utf-8"))["key"] for path in (out / "store").glob("*/entry.json")
    ]
    features = [key["data"] for key in keys if key["split"] == "features"]
    # in-domain, its test part, outliers, four OOD sets: the runs split the same features
    assert len(features) == len(set(features)) == 7


@pytest.mark.parametrize(
    "method", ["baseline", "mcdp", "deep-ensemble", "binary", "edl", "dpn-minus"]
)
def test_outputs_of_features_are_those_of_images(done, method: str) -> None:
    run = open_run(done[0] / RUNS / method / "seed-0")
    spec = SourceSpec.parse("sklearn:digits", "in_domain")
    x = run.transform(DatasetCache("data", Path()).load(spec).inputs[:20])
    predictor = Predictor(run)
    with torch.inference_mode():
        features = predictor.classifier.encoder(x)
        whole, parts = predictor.outputs(x), predictor.outputs_of_features(features)
    assert whole.keys() == parts.keys()
    for name in whole:
        torch.testing.assert_close(whole[name], parts[name], rtol=1e-4, atol=1e-5)


def test_a_head_learns_what_scikit_learn_does_on_the_same_features(weights: Path, tmp_path) -> None:
    from sklearn.linear_model import LogisticRegression

    run = train(frozen(weights, epochs=100, lr=0.02, weight_decay=0.0), tmp_path, device="cpu")
    data = DatasetCache("data", Path()).load(run.config.in_domain, in_domain=True)
    with torch.inference_mode():
        features = Predictor(run).classifier.encoder(run.transform(data.inputs)).numpy()
    reference = LogisticRegression(C=100, max_iter=2000).fit(features, data.labels.numpy())
    head = load_file(tmp_path / "classifier.safetensors")
    ours = (features @ head["head.weight"].numpy().T + head["head.bias"].numpy()).argmax(1)
    agreement = float(np.mean(ours == data.labels.numpy()))
    assert agreement > reference.score(features, data.labels.numpy()) - 0.15


def test_a_hidden_layer_and_dropout_belong_to_the_head(weights: Path, tmp_path) -> None:
    config = frozen(weights, "mcdp", head={"hidden": 16, "drop_rate": 0.3})
    run = train(config, tmp_path, device="cpu")
    shapes = {tuple(each.shape) for each in load_file(tmp_path / "classifier.safetensors").values()}
    assert shapes == {(16, 96), (16,), (7, 16), (7,)}
    with torch.inference_mode():
        outputs = Predictor(run).outputs(torch.randn(4, 3, 32, 32))
    assert (outputs["mutual_information"] > 0).any()


def test_lost_and_changed_base_weights_are_reported(weights: Path, tmp_path) -> None:
    copy = tmp_path / "base.safetensors"
    copy.write_bytes(weights.read_bytes())
    run = train(frozen(copy), tmp_path / "run", device="cpu")
    network = run.method.networks[0]
    moved = copy.rename(tmp_path / "moved.safetensors")
    with pytest.raises(UserError, match=r"is a head on the weights .*base.safetensors.*no weights"):
        run.load_network(network)
    again = train(frozen(moved), tmp_path / "run", device="cpu")  # where it is now
    assert again.weights_hash == run.weights_hash
    assert again.load_network(network).num_classes == 7
    save_file(timm.create_model("test_resnet", num_classes=9).state_dict(), copy)
    with pytest.raises(UserError, match=r"is a head on the weights .* have changed"):
        run.load_network(network)


def test_freezing_needs_weights(tmp_path) -> None:
    recipe = Recipe.named("small", epochs=1, freeze=True)
    with pytest.raises(UserError, match="--pretrained or --weights FILE"):
        train(digits("baseline", recipe=recipe), tmp_path / "run", device="cpu")
    assert not (tmp_path / "run").exists()


def test_a_warm_up_changes_the_classifier_alone(weights: Path, tmp_path) -> None:
    config = frozen(weights, freeze=False, epochs=1, freeze_epochs=1, layer_decay=0.8)
    train(config, tmp_path / "warm-up", device="cpu")
    before, after = load_file(weights), load_file(tmp_path / "warm-up/classifier.safetensors")
    counted = [name for name in before if not name.endswith("num_batches_tracked")]
    changed = {name for name in counted if not torch.equal(before[name], after[name])}
    assert changed == {"fc.weight", "fc.bias"}
    longer = frozen(weights, freeze=False, epochs=6, freeze_epochs=1, layer_decay=0.8, lr=0.01)
    train(longer, tmp_path / "all", device="cpu")
    after = load_file(tmp_path / "all/classifier.safetensors")
    assert not torch.equal(before["conv1.0.weight"], after["conv1.0.weight"])


def test_views_are_stored_for_all_runs_and_used_in_turn(weights: Path, tmp_path) -> None:
    changes = {**CHANGES, "epochs = 2": "epochs = 4\nimage_size = 32\nfreeze = true\nviews = 2"}
    suite = suite_file(tmp_path, DIGITS, changes)
    out, methods = tmp_path / "out", ("baseline", "oe")
    bench(suite, out, weights=weights, methods=methods, detectors=("dpn-mi",), seeds=2, limit=100)
    keys = [
        json.loads(path.read_text("utf-8"))["key"] for path in (out / "store").glob("*/entry.json")
    ]
    views = [key["extra"]["view"]["number"] for key in keys if "view" in key["extra"]]
    assert sorted(views) == [0, 0, 1, 1]  # of in-domain data and of outliers, for all four runs


def test_an_epoch_uses_one_view() -> None:
    points = [torch.full((20, 3), float(value)) for value in (1, 2)]
    labels = torch.arange(20) % 2
    parts = [Samples(each, labels, "view", ("a", "b")) for each in points]
    views = tuple(TrainingData(each, each, outliers=each) for each in parts)
    plain = Samples(torch.zeros(20, 3), labels, "plain", ("a", "b"))
    data = TrainingData(plain, plain, outliers=plain, views=views)
    recipe = Recipe.named("small", batch_size=5, outlier_batch_size=5)
    batches = PairedBatches(data, recipe, Processes.join("cpu"), seed=0)
    for epoch, value in enumerate((1, 2, 1)):
        for x, _ in batches.rest_of(epoch, epoch * len(batches)):
            assert set(x.flatten().tolist()) == {value}


@pytest.mark.parametrize("method", ["vos", "cac", "confidence", "mixoe", "energy-ft"])
def test_heads_are_trained_with_the_losses_of_the_host(method, weights, tmp_path) -> None:
    options = {"sample_number": 5, "sample_from": 20} if method == "vos" else {}
    config = frozen(weights, method, epochs=15, lr=0.02).model_copy(update={"options": options})
    run = train(config, tmp_path, device="cpu")
    assert run.record.networks["classifier"].history[-1].held_out_accuracy > 0.4
    x = torch.rand(3, 3, 32, 32)
    with torch.inference_mode():
        found = Predictor(run).outputs(x)
    assert ("own_score" in found) == run.method.has_own_score


def test_images_of_a_frozen_network_are_not_mixed(weights, tmp_path) -> None:
    with pytest.raises(UserError, match=r"'pixmix' cannot be trained on this data: .* fixed"):
        train(frozen(weights, "pixmix"), tmp_path / "out", device="cpu")
