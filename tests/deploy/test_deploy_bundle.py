"""A bundle is a run with its detectors: complete, exact, and the same whatever form images have."""

import json
import os
import threading
from pathlib import Path

import numpy as np
import pytest
import timm
import torch
from bundles import DETECTORS, IMAGES, bundle_folder, tensors, trained_run
from PIL import Image
from safetensors.torch import save_file
from tiny_runs import digits

import dpn_plugin
from dpn_plugin.backbones import WeightsFile
from dpn_plugin.data import DatasetCache
from dpn_plugin.deploy import DecisionRule, create_bundle, load_bundle
from dpn_plugin.detectors import create_detector
from dpn_plugin.errors import UserError
from dpn_plugin.metrics import FisherCombination, conformal_p_values
from dpn_plugin.runs import Recipe
from dpn_plugin.training import load_training_data, train

ALL = [name for name in dpn_plugin.list_detectors() if name != "mcm"]


def calibration(run):
    data = load_training_data(run.config, run.method, DatasetCache("data", Path()))
    assert data.calibration is not None
    return data


@pytest.mark.slow
def test_every_detector_survives_the_way_through_files() -> None:
    run = trained_run(image_size=32, drop_rate=0.1)
    folder = bundle_folder(detectors=tuple(ALL), image_size=32, drop_rate=0.1)
    bundle = load_bundle(folder, "cpu")
    samples = calibration(run).calibration.inputs
    found = bundle(samples[:20])
    for name in ALL:
        known = bundle.calibrations[name].scores[:20]
        torch.testing.assert_close(found.detectors[name].score, known, rtol=1e-5, atol=1e-6)
    kept = {name: each.kept for name, each in bundle.record.detectors.items()}
    assert kept["mahalanobis"] == "state"
    assert kept["knn"] == "fitting data"
    assert kept["dpn-mi"] == "nothing"
    assert [n for n, each in bundle.record.detectors.items() if each.one_by_one] == ["mcd"]


def test_scores_are_those_of_the_detector_alone() -> None:
    run = trained_run()
    data = calibration(run)
    bundle = load_bundle(bundle_folder(), "cpu")
    network = bundle.scorer.predictor.classifier
    with torch.no_grad():
        train_features = network.encoder(run.transform(data.train.inputs))
        features = network.encoder(run.transform(tensors(0, 1, 2)))
    detector = create_detector("knn", network).fit_features(train_features, data.train.labels)
    expected = detector.predict_features(features)
    found = bundle(tensors(0, 1, 2)).detectors["knn"].score
    torch.testing.assert_close(found, expected.double(), rtol=1e-4, atol=1e-5)


def test_p_values_and_decisions_follow_from_the_calibration_scores() -> None:
    bundle = load_bundle(bundle_folder(), "cpu")
    for name, found in bundle(tensors(*range(50))).detectors.items():
        known = bundle.calibrations[name].scores.tolist()
        for score, p_value, rejected in zip(
            found.score, found.p_value, found.rejected, strict=True
        ):
            larger = sum(each >= score for each in known)
            assert float(p_value) == (1 + larger) / (1 + len(known))
            assert bool(rejected) == (float(p_value) <= 0.05)


def test_a_combination_is_calibrated_on_the_half_that_its_members_do_not_use() -> None:
    name = "fisher(dpn-mi,knn)"
    bundle = load_bundle(bundle_folder(detectors=(name,)), "cpu")
    assert [*bundle.record.detectors] == ["dpn-mi", "knn", name]
    members = torch.stack([bundle.calibrations[each].scores for each in ("dpn-mi", "knn")], dim=1)
    expected = FisherCombination(members)
    assert len(expected.calibration) == len(members) - len(members) // 2
    found = bundle(tensors(*range(20))).detectors
    scores = torch.stack([found[each].score for each in ("dpn-mi", "knn")], dim=1)
    assert torch.equal(found[name].score, expected.scores(scores))
    p_values = conformal_p_values(expected.calibration, found[name].score)
    assert torch.equal(found[name].p_value, p_values)
    assert torch.equal(found[name].rejected, p_values <= 0.05)


def test_all_forms_of_an_image_give_the_same_result() -> None:
    bundle = load_bundle(bundle_folder(), "cpu")
    grey = IMAGES[:3]
    expected = bundle(tensors(0, 1, 2)).to_frame()
    forms = [
        [Image.fromarray(image) for image in grey],
        list(grey),
        np.repeat(grey[..., None], 3, axis=3),
        [torch.from_numpy(image)[None] for image in grey],
        torch.from_numpy(grey)[:, None].float() / 255,
    ]
    for images in forms:
        found = bundle(images).to_frame()
        assert found["prediction"].tolist() == expected["prediction"].tolist()
        numbers = expected.select_dtypes("number").columns
        np.testing.assert_allclose(found[numbers], expected[numbers], rtol=1e-3, atol=1e-5)
    assert bundle(Image.fromarray(grey[0]).resize((20, 30))).prediction
    assert len(bundle(grey[0])) == 1
    assert len(bundle([])) == 0


@pytest.mark.parametrize(
    ("images", "message"),
    [
        (np.zeros((8, 8)), "must be uint8"),
        (torch.zeros(8, 8, dtype=torch.uint8), "C x H x W"),
        (torch.zeros(1, 1, 9, 9), "shape of the inputs"),
        (torch.full((1, 1, 8, 8), 200.0), "values from 200 to 200"),
        ("a.png", "not str"),
        ([1, 2], "not int"),
        (np.zeros((8, 8, 7), np.uint8), "H x W x C"),
    ],
)
def test_other_things_are_refused(images, message: str) -> None:
    with pytest.raises(UserError, match=message):
        load_bundle(bundle_folder(), "cpu")(images)


@pytest.mark.parametrize("detectors", [DETECTORS, ("odin", "gram", "dpn-mi")])
def test_threads_get_the_results_of_a_single_one(detectors: tuple[str, ...]) -> None:
    bundle = load_bundle(bundle_folder(detectors=detectors), "cpu")
    groups = [tensors(*range(start, start + 8)) for start in range(0, 96, 8)]
    expected = [bundle(group).to_frame() for group in groups]
    found: list = [None] * len(groups)

    def work(offset: int) -> None:
        for index in range(offset, len(groups), 4):
            found[index] = bundle(groups[index]).to_frame()

    threads = [threading.Thread(target=work, args=(offset,)) for offset in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    for ours, theirs in zip(found, expected, strict=True):
        assert ours.equals(theirs)


def test_results_do_not_depend_on_the_size_of_batches() -> None:
    bundle = load_bundle(bundle_folder(), "cpu")
    numbers = [bundle(tensors(*range(30)), size).to_frame() for size in (1, 7, 256)]
    columns = numbers[0].select_dtypes("number").columns
    for other in numbers[1:]:
        np.testing.assert_allclose(numbers[0][columns], other[columns], rtol=1e-3, atol=1e-4)


@pytest.mark.parametrize("method", ["deep-ensemble", "mcdp"])
def test_averaged_predictions_have_scores_of_their_own(method: str) -> None:
    recipe = {"epochs": 1, "drop_rate": 0.2}
    names = ("dpn-mi", "dpn-entropy")
    bundle = load_bundle(bundle_folder(method, names, **recipe), "cpu")
    alone = torch.cat([bundle(tensors(row)).detectors["dpn-mi"].score for row in range(5)])
    found = bundle(tensors(*range(5)))
    torch.testing.assert_close(found.detectors["dpn-mi"].score, alone, rtol=1e-3, atol=1e-6)
    assert found.measures.log_precision.isnan().all()
    torch.testing.assert_close(found.measures.mutual_information, alone, rtol=1e-3, atol=1e-6)
    with pytest.raises(UserError, match="averages predictions, which have no knn"):
        create_bundle(trained_run(method, **recipe), ["knn"], "unused", device="cpu")


def test_a_run_with_an_ood_classifier_is_scored_by_it() -> None:
    bundle = load_bundle(bundle_folder("binary", ("binary",), epochs=1), "cpu")
    assert bundle(tensors(0, 1)).detectors["binary"].score.shape == (2,)
    with pytest.raises(UserError, match="its own 'binary', not with 'knn'"):
        create_bundle(trained_run("binary", epochs=1), ["knn"], "unused", device="cpu")
    with pytest.raises(UserError, match="this run is 'dpn-minus'"):
        create_bundle(trained_run(), ["binary"], "unused", device="cpu")


def test_thresholds_can_hold_within_classes_and_with_confidence() -> None:
    rule = DecisionRule(alpha=0.2, by_class=True)
    bundle = load_bundle(bundle_folder(detectors=("dpn-mi",), rule=rule), "cpu")
    assert len(bundle.record.detectors["dpn-mi"].thresholds) == 7
    found = bundle(tensors(*range(100))).detectors["dpn-mi"]
    assert torch.equal(found.rejected, found.p_value <= 0.2)
    sure = bundle_folder(detectors=("dpn-mi",), rule=DecisionRule(alpha=0.2, confidence=0.95))
    plain = bundle_folder(detectors=("dpn-mi",), rule=DecisionRule(alpha=0.2))
    limits = [
        load_bundle(each, "cpu").record.detectors["dpn-mi"].thresholds for each in (sure, plain)
    ]
    assert limits[0] > limits[1]


def test_a_run_without_calibration_samples_says_how_to_get_some(tmp_path: Path) -> None:
    run = train(digits("baseline"), tmp_path / "run", device="cpu")
    with pytest.raises(UserError, match=r"dpn train --set calibration=0\.1"):
        create_bundle(run, ["dpn-mi"], tmp_path / "bundle", device="cpu")


@pytest.mark.parametrize(
    ("detectors", "rule", "message"),
    [
        (["dpn-mi"], DecisionRule(alpha=0.001), "needs at least 999 calibration samples"),
        (["dpn-mi", "dpn-mi"], None, "'dpn-mi' is named twice"),
        ([], None, "at least one detector"),
        (["dpn-mii"], None, "Did you mean 'dpn-mi'"),
        (["mcm"], None, "no text encoder"),
        (["fisher(dpn-mi,knnn)"], None, "Did you mean 'knn'"),
        (["fisher(dpn-mi,knn)", "fisher(dpn-mi,knn)"], None, "is named twice"),
    ],
)
def test_what_cannot_be_bundled_is_refused(tmp_path: Path, detectors, rule, message) -> None:
    with pytest.raises(UserError, match=message):
        create_bundle(trained_run(), detectors, tmp_path / "b", rule=rule, device="cpu")
    assert not (tmp_path / "b").exists()


def test_other_data_than_the_run_was_trained_on_is_refused(tmp_path: Path) -> None:
    np.savez(tmp_path / "d.npz", images=IMAGES[:200], labels=np.arange(200) % 3)
    config = digits("baseline", in_domain={"source": f"npz:{tmp_path / 'd.npz'}"})
    recipe = config.recipe.model_copy(update={"calibration": 0.2, "epochs": 1})
    run = train(config.model_copy(update={"recipe": recipe}), tmp_path / "run", device="cpu")
    np.savez(tmp_path / "d.npz", images=IMAGES[200:400], labels=np.arange(200) % 3)
    with pytest.raises(UserError, match=r"is not what the run in .* was trained on: .*calibration"):
        create_bundle(run, ["dpn-mi"], tmp_path / "b", device="cpu")


def test_options_of_detectors_are_kept(tmp_path: Path) -> None:
    plain = load_bundle(bundle_folder(detectors=("dpn-dent",)), "cpu")
    options = {"dpn-dent": {"invert": True}}
    folder = create_bundle(
        trained_run(), ["dpn-dent"], tmp_path / "b", options=options, device="cpu"
    )
    inverted = load_bundle(folder, "cpu")
    ours, theirs = (each(tensors(0, 1)).detectors["dpn-dent"].score for each in (inverted, plain))
    torch.testing.assert_close(ours, -theirs)
    with pytest.raises(UserError, match="not among the detectors"):
        create_bundle(trained_run(), ["dpn-mi"], tmp_path / "c", options=options, device="cpu")


def test_a_bundle_holds_no_pickle_and_is_not_overwritten(tmp_path: Path) -> None:
    folder = bundle_folder()
    assert {path.suffix for path in folder.iterdir()} == {".json", ".safetensors"}
    record = json.loads((folder / "bundle.json").read_text())
    assert set(record["files"]) == set(os.listdir(folder)) - {"bundle.json"}
    with pytest.raises(UserError, match="--force to replace it"):
        create_bundle(trained_run(), ["dpn-mi"], folder, device="cpu")
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine" / "letter.txt").write_text("keep")
    with pytest.raises(UserError, match=r"letter\.txt"):
        create_bundle(trained_run(), ["dpn-mi"], tmp_path / "mine", replace=True, device="cpu")


def test_a_bundle_of_a_frozen_run_holds_the_network_below_the_head(tmp_path: Path) -> None:
    weights = tmp_path / "base.safetensors"
    torch.manual_seed(0)
    save_file(timm.create_model("test_resnet", num_classes=9).state_dict(), weights)
    recipe = Recipe.named("small", epochs=2, batch_size=32, freeze=True, calibration=0.2)
    config = digits("baseline", weights=WeightsFile.at(weights), network_size=32, recipe=recipe)
    run = train(config, tmp_path / "run", device="cpu")
    folder = create_bundle(run, ("knn", "dpn-maxp"), tmp_path / "bundle", device="cpu")
    expected = load_bundle(folder, "cpu")(tensors(1, 2, 3))
    weights.unlink()
    found = load_bundle(folder, "cpu")(tensors(1, 2, 3))
    assert torch.equal(found.detectors["knn"].score, expected.detectors["knn"].score)
    with pytest.raises(UserError, match=r"base\.safetensors"):
        run.load_network(run.method.networks[0])


def test_a_bundle_scores_with_what_the_loss_has_trained() -> None:
    bundle = load_bundle(bundle_folder("confidence", ("own-score", "dpn-maxp")), "cpu")
    images = tensors(0, 1, 2)
    with torch.inference_mode():
        outputs = bundle.scorer.predictor.outputs(bundle.scorer.run.transform(images))
    found = bundle(images).detectors["own-score"].score
    torch.testing.assert_close(found, outputs["own_score"].double())
    with pytest.raises(UserError, match="has no 'own-score'"):
        bundle_folder("dpn-minus", ("own-score",))
