"""The figures: each is recomputed with scikit-learn from the stored logits."""

import json
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
import torch
from sklearn.metrics import auc, precision_recall_curve, roc_auc_score, roc_curve
from tiny_bench import DIGITS, RecordingMonitor, bench, record, results, suite_file

from dpn_plugin import create_detector
from dpn_plugin.backbones import Backbone
from dpn_plugin.detectors import GaussianKL
from dpn_plugin.evaluation.rows import gap_rows
from dpn_plugin.outputs import OutputStore

METHODS = ("baseline", "dpn-minus", "mcdp", "deep-ensemble", "binary", "edl")
DETECTORS = ("dpn-maxp", "dpn-mi", "dpn-gaussian-kl", "knn")
KEYS = ["backbone", "method", "seed", "task", "detector", "dataset", "metric"]


@pytest.fixture(scope="module")
def done(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, RecordingMonitor]:
    out = tmp_path_factory.mktemp("figures")
    suite = suite_file(out, DIGITS)
    return out, bench(suite, out, methods=METHODS, detectors=DETECTORS, epochs=4, limit=250)


def stored(out: Path, method: str, *place: str) -> dict[str, np.ndarray]:
    path = out / "runs" / "test_resnet" / method / "seed-0" / "evaluation.json"
    key = json.loads(path.read_text("utf-8"))["outputs"]
    for each in place:
        key = key[each]
    found = OutputStore(out / "store").open(key)
    assert found is not None
    return dict(found.arrays)


def figure(out: Path, **wanted: str) -> float:
    table = results(out)
    for column, value in wanted.items():
        table = table[table[column] == value]
    assert len(table) == 1
    return float(table["value"].iloc[0])


def uncertainty(arrays: dict[str, np.ndarray], detector: str) -> np.ndarray:
    # the detector itself: another formula may give two samples the same score
    return (
        create_detector(detector).predict_logits(torch.from_numpy(arrays["logits"].copy())).numpy()
    )


def expected_ood(inside: np.ndarray, outside: np.ndarray) -> dict[str, float]:
    scores = np.concatenate([inside, outside])
    is_out = np.arange(len(scores)) >= len(inside)
    precision, recall, _ = precision_recall_curve(is_out, scores)
    precision_in, recall_in, _ = precision_recall_curve(~is_out, -scores)
    fpr, tpr, _ = roc_curve(is_out, scores)
    return {
        "auroc": roc_auc_score(is_out, scores),
        "aupr_out": auc(recall, precision),
        "aupr_in": auc(recall_in, precision_in),
        "fpr95": fpr[np.argmax(tpr >= 0.95)],
    }


@pytest.mark.parametrize("detector", ["dpn-maxp", "dpn-mi"])
@pytest.mark.parametrize("method", ["baseline", "dpn-minus", "edl"])
def test_ood_detection_is_what_scikit_learn_finds(method: str, detector: str, done) -> None:
    out, _ = done
    inside = uncertainty(stored(out, method, "in_domain_test"), detector)
    means: dict[str, list[float]] = {}
    for group, name in [("near", "seven"), ("near", "eight"), ("far", "noise"), ("far", "flower")]:
        outside = uncertainty(stored(out, method, group, name), detector)
        for metric, value in expected_ood(inside, outside).items():
            ours = figure(out, method=method, detector=detector, dataset=name, metric=metric)
            assert ours == pytest.approx(value, abs=1e-6)
            means.setdefault(f"{group} {metric}", []).append(ours)
    for key, values in means.items():
        group, metric = key.split()
        ours = figure(out, method=method, detector=detector, dataset=group, metric=metric)
        assert ours == pytest.approx(np.mean(values), abs=1e-12)


def test_accuracy_and_misclassification_are_what_scikit_learn_finds(done) -> None:
    out, _ = done
    arrays = stored(out, "dpn-minus", "in_domain_test")
    wrong = arrays["logits"].argmax(axis=1) != arrays["labels"]
    assert 0 < wrong.mean() < 1
    assert figure(out, method="dpn-minus", metric="accuracy") == pytest.approx(1 - wrong.mean())
    scores = uncertainty(arrays, "dpn-maxp")
    precision, recall, _ = precision_recall_curve(wrong, scores)
    wanted = {"method": "dpn-minus", "detector": "dpn-maxp", "task": "misclassification"}
    assert figure(out, metric="auroc", **wanted) == pytest.approx(roc_auc_score(wrong, scores))
    assert figure(out, metric="aupr", **wanted) == pytest.approx(auc(recall, precision))


def test_averaged_predictions_are_scored_by_three_measures(done) -> None:
    out, _ = done
    for method in ("mcdp", "deep-ensemble"):
        arrays, noise = stored(out, method, "in_domain_test"), stored(out, method, "far", "noise")
        np.testing.assert_allclose(np.exp(arrays["logits"]).sum(axis=1), 1, rtol=1e-5)
        wanted = {"method": method, "dataset": "noise", "metric": "auroc"}
        for detector, name, sign in (("dpn-maxp", "logits", -1), ("dpn-mi", None, 1)):
            parts = [
                sign * (each[name].max(axis=1) if name else each["mutual_information"])
                for each in (arrays, noise)
            ]
            expected = expected_ood(*parts)["auroc"]
            assert figure(out, detector=detector, **wanted) == pytest.approx(expected, abs=1e-6)
        others = [row for row in record(out)["not_run"] if row["method"] == method]
        assert [row["detector"] for row in others] == ["dpn-gaussian-kl", "knn"]
        assert all(row["reason"].startswith("not applicable: ") for row in others)
        assert "gap" not in set(results(out).query("method == @method")["task"])


def test_a_binary_network_is_scored_by_its_own_second_output(done) -> None:
    out, _ = done
    rows = results(out).query("method == 'binary' and task == 'ood'")
    assert set(rows["detector"]) == {"binary"}
    scores = [
        each["ood_logits"][:, 1] - each["ood_logits"][:, 0]
        for each in (stored(out, "binary", "in_domain_test"), stored(out, "binary", "far", "noise"))
    ]
    ours = figure(out, method="binary", task="ood", dataset="noise", metric="auroc")
    assert ours == pytest.approx(expected_ood(*scores)["auroc"], abs=1e-6)


def test_results_are_tidy_and_in_the_order_of_the_plan(done) -> None:
    out, _ = done
    table = results(out)
    assert list(table.columns) == ["suite", *KEYS, "value"]
    assert not table.duplicated(KEYS).any()
    assert list(dict.fromkeys(table["method"])) == list(METHODS)
    assert set(table["task"]) == {
        "classification", "ood", "misclassification", "selective", "calibration", "gap",
    }  # fmt: skip
    assert set(table["dataset"]) == {"", "seven", "eight", "noise", "flower", "near", "far"}


def test_the_leaderboard_has_the_columns_of_openood(done) -> None:
    out, _ = done
    table = pd.read_csv(out / "leaderboard.csv")
    assert list(table.columns) == [
        "backbone", "method", "detector", "Near-OOD AUROC", "Far-OOD AUROC", "Near-OOD FPR@95",
        "Far-OOD FPR@95", "Near-OOD AUPR_IN", "Far-OOD AUPR_IN", "Near-OOD AUPR_OUT",
        "Far-OOD AUPR_OUT", "ID ACC", "Seeds",
    ]  # fmt: skip
    assert table["Far-OOD AUROC"].is_monotonic_decreasing
    row = table.query("method == 'dpn-minus' and detector == 'dpn-mi'").iloc[0]
    wanted = {"method": "dpn-minus", "detector": "dpn-mi", "dataset": "near", "metric": "auroc"}
    assert row["Near-OOD AUROC"] == pytest.approx(100 * figure(out, **wanted))
    assert row["ID ACC"] == pytest.approx(100 * figure(out, method="dpn-minus", metric="accuracy"))


def test_the_gap_is_the_same_without_all_logits_in_memory(done) -> None:
    out, _ = done
    test, noise = (
        stored(out, "dpn-minus", "in_domain_test"),
        stored(out, "dpn-minus", "far", "noise"),
    )
    logits = torch.from_numpy(np.concatenate([test["logits"], noise["logits"]]))
    labels = torch.from_numpy(np.concatenate([test["labels"], noise["labels"]]))
    expected = GaussianKL().fit_logits(logits, labels).gap()
    rows = gap_rows(test, {"far.noise": noise})
    found = {row.metric: row.value for row in rows if row.dataset == "noise"}
    assert found == pytest.approx(expected)


def test_warnings_are_shown_once_and_recorded(done) -> None:
    out, monitor = done
    assert len(monitor.warnings) == len(set(monitor.warnings))
    for message in monitor.warnings:
        assert any(each.startswith(message) for each in record(out)["warnings"])


def test_time_and_memory_of_detectors_are_recorded(done) -> None:
    out, _ = done
    path = out / "runs" / "test_resnet" / "baseline" / "seed-0" / "evaluation.json"
    costs = json.loads(path.read_text("utf-8"))["detectors"]
    assert set(costs) == set(DETECTORS)
    assert all(each["seconds"] >= 0 and each["peak_memory"] >= 0 for each in costs.values())


def test_every_image_goes_through_the_model_once(tmp_path: Path, monkeypatch) -> None:
    suite = suite_file(tmp_path, DIGITS)
    bench(suite, tmp_path, detectors=("dpn-maxp",))
    for folder in (tmp_path / "store").iterdir():
        if folder.is_dir():
            for path in folder.iterdir():
                path.unlink()
            folder.rmdir()
    (tmp_path / "runs/test_resnet/baseline/seed-0/evaluation.json").unlink()
    seen, outputs = [], Backbone.outputs

    def counted(self, x):
        seen.append(len(x))
        return outputs(self, x)

    monkeypatch.setattr(Backbone, "outputs", counted)
    monkeypatch.setattr(Backbone, "forward", lambda self, x: counted(self, x).logits)
    detectors = ("dpn-maxp", "dpn-mi", "energy", "mahalanobis", "knn", "vim")
    monitor = bench(suite, tmp_path, detectors=detectors)
    assert len(monitor.detectors) == 6
    sizes = record(tmp_path)["sets"]
    tests = 180 + sum(each["samples"] for group in sizes.values() for each in group.values())
    trained = json.loads(
        (tmp_path / "runs/test_resnet/baseline/seed-0/run.json").read_text("utf-8")
    )["samples"]
    # shapes are found out with one image
    passed = sum(size for size in seen if size > 1)
    assert passed == tests + trained["train"] + trained["held_out"]
