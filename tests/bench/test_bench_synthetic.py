"""The suite ``synthetic`` as it is: its figures show what the paper's picture shows."""

import pandas as pd
import pytest
from tiny_bench import bench, results

pytestmark = pytest.mark.slow

METHODS = ("dpn-minus", "dpn-plus-anchored", "dpn-minus-anchored")
SEEDS = 5


@pytest.fixture(scope="module")
def auroc(tmp_path_factory: pytest.TempPathFactory) -> pd.DataFrame:
    """The AUROC of the OOD points: a row for every method and seed, a column for every measure."""
    out = tmp_path_factory.mktemp("synthetic")
    detectors = ("dpn-mi", "dpn-dent")
    bench("synthetic", out, methods=METHODS, seeds=SEEDS, detectors=detectors)
    table = results(out)
    table = table[(table["metric"] == "auroc") & (table["dataset"] == "around")]
    found = table.pivot(index=["method", "seed"], columns="detector", values="value")
    assert len(found) == len(METHODS) * SEEDS
    return found


def test_dpn_minus_separates_ood_points_and_inverts_differential_entropy(auroc) -> None:
    found = auroc.loc["dpn-minus"]
    assert (found["dpn-mi"] > 0.99).all(), found
    assert (found["dpn-dent"] < 0.3).all(), found


@pytest.mark.parametrize("method", ["dpn-plus-anchored", "dpn-minus-anchored"])
def test_anchored_methods_separate_ood_points_for_every_seed(method: str, auroc) -> None:
    found = auroc.loc[method]
    assert (found["dpn-mi"] > 0.99).all(), found


def test_differential_entropy_of_anchored_dpn_plus_is_not_inverted(auroc) -> None:
    found = auroc.loc["dpn-plus-anchored"]
    assert (found["dpn-dent"] > 0.99).all(), found
