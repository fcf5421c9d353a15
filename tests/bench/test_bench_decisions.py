"""Decisions in benchmarks: recomputed from stored outputs, with their notes and refusals."""

from pathlib import Path

import numpy as np
import pytest
import torch
from tiny_bench import POINTS, bench, record, results, suite_file

from dpn_plugin.bench import Request, load_suite, make_plan
from dpn_plugin.errors import UserError
from dpn_plugin.evaluation import read_evaluation
from dpn_plugin.functional import mutual_information, one_minus_max_p
from dpn_plugin.outputs import OutputStore
from dpn_plugin.runs import open_run

SOURCE = '[calibration]\nsource = "synthetic:gaussians"\nsplit = "calibration"\n'
CALIBRATED = {
    "[outliers]": f"{SOURCE}[outliers]",
    '"mahalanobis"]': '"mahalanobis", "fisher(dpn-maxp,dpn-mi)"]',
}
FISHER = "fisher(dpn-maxp,dpn-mi)"


@pytest.fixture(scope="module")
def done(tmp_path_factory: pytest.TempPathFactory) -> Path:
    out = tmp_path_factory.mktemp("decisions")
    bench(suite_file(out, POINTS, CALIBRATED), out / "bench")
    return out / "bench"


def _logits(out: Path, method: str, name: str) -> torch.Tensor:
    folder = out / f"runs/mlp_synthetic/{method}/seed-0"
    keys = read_evaluation(folder).outputs
    key = keys.far[name] if name in keys.far else getattr(keys, name)
    return torch.from_numpy(np.array(OutputStore(out / "store").open(key).arrays["logits"]))


@pytest.mark.parametrize("method", ["baseline", "dpn-minus"])
@pytest.mark.parametrize("alpha", [0.01, 0.05, 0.1])
def test_rejected_shares_are_those_above_the_quantile_of_calibration_scores(
    method: str, alpha: float, done: Path
) -> None:
    calibration, inside, outside = (
        one_minus_max_p(_logits(done, method, name).double()).numpy()
        for name in ("calibration", "in_domain_test", "around")
    )
    assert len(calibration) == 600
    # of 600, the 6th, 30th and 60th largest: floor(alpha * 601)
    threshold = np.sort(calibration)[-int(alpha * 601)]
    rows = results(done).query(
        "task == 'decision' and detector == 'dpn-maxp' and method == @method"
    )
    found = rows[rows["metric"] == f"rejected@{alpha:g}"].set_index("dataset")["value"]
    assert found[""] == pytest.approx((inside > threshold).mean())
    assert found["around"] == found["far"] == pytest.approx((outside > threshold).mean())


def test_a_combination_has_the_figures_of_fishers_statistic(done: Path) -> None:
    def members(name: str) -> np.ndarray:
        logits = _logits(done, "baseline", name).double()
        return torch.stack([one_minus_max_p(logits), mutual_information(logits)]).numpy()

    calibration, inside, outside = map(members, ("calibration", "in_domain_test", "around"))
    order = torch.randperm(600, generator=torch.Generator().manual_seed(0)).numpy()
    reference, rest = calibration[:, order[:300]], calibration[:, order[300:]]

    def statistic(scores: np.ndarray) -> np.ndarray:
        not_below = (reference[:, None, :] >= scores[:, :, None]).sum(axis=2)
        return -2 * np.log((1 + not_below) / 301).sum(axis=0)

    threshold = np.sort(statistic(rest))[-int(0.1 * 301)]
    rows = results(done).query("detector == @FISHER and method == 'baseline'")
    shares = rows[rows["metric"] == "rejected@0.1"].set_index("dataset")["value"]
    assert shares[""] == pytest.approx((statistic(inside) > threshold).mean())
    assert shares["around"] == pytest.approx((statistic(outside) > threshold).mean())
    assert {"ood", "misclassification", "selective", "decision"} == set(rows["task"])


def test_selective_rows_are_there_for_in_domain_samples_and_every_set(done: Path) -> None:
    rows = results(done).query("task == 'selective' and detector == 'dpn-mi'")
    metrics = {"aurc", "augrc", "coverage@0.01", "coverage@0.05", "coverage@0.1"}
    for dataset in ("", "around", "far"):
        assert set(rows[rows["dataset"] == dataset]["metric"]) == metrics
    at_full = rows[(rows["metric"] == "augrc") & (rows["method"] == "baseline")]
    values = at_full.set_index("dataset")["value"]
    assert values[""] < values["around"]  # OOD samples are errors


def test_levels_with_too_few_calibration_samples_are_left_out_with_a_note(tmp_path: Path) -> None:
    changes = {
        "[outliers]": f"{SOURCE}limit = 30\n[outliers]",
        '["baseline", "dpn-minus"]': '["baseline"]',
    }
    monitor = bench(suite_file(tmp_path, POINTS, changes), tmp_path / "bench")
    decided = results(tmp_path / "bench").query("task == 'decision'")
    assert set(decided["metric"]) == {"rejected@0.05", "rejected@0.1"}
    note = "no decisions at alpha = 0.01: alpha = 0.01 needs at least 99 calibration samples, and "
    assert any(f"{note}there are 30" in message for message in monitor.warnings)
    assert any(note in message for message in record(tmp_path / "bench")["warnings"])


def test_without_calibration_there_are_no_decisions_and_no_combinations(tmp_path: Path) -> None:
    changes = {'["baseline", "dpn-minus"]': '["baseline"]'}
    out = tmp_path / "bench"
    bench(suite_file(tmp_path, POINTS, changes), out, detectors=("dpn-mi", FISHER))
    assert set(results(out)["detector"]) == {"", "dpn-mi"}
    assert "decision" not in set(results(out)["task"])
    (reason,) = [each["reason"] for each in record(out)["not_run"]]
    assert "set calibration = 0.1 in [train]" in reason


def test_a_share_is_taken_from_the_training_data_and_evaluated_elsewhere(tmp_path: Path) -> None:
    changes = {'["baseline", "dpn-minus"]': '["baseline"]', "epochs = 2": "calibration = 0.2"}
    suite = suite_file(tmp_path, POINTS, changes)
    bench(suite, tmp_path / "bench", epochs=1)
    run = tmp_path / "bench/runs/mlp_synthetic/baseline/seed-0"
    assert open_run(run).record.samples == {"train": 432, "held_out": 48, "calibration": 120}
    bench(suite, tmp_path / "again", only_eval=run)
    first, second = (results(tmp_path / name) for name in ("bench", "again"))
    assert first.query("task == 'decision'")["value"].tolist() == (
        second.query("task == 'decision'")["value"].tolist()
    )


def test_a_share_and_a_source_exclude_each_other(tmp_path: Path) -> None:
    changes = {**CALIBRATED, "epochs = 2": "calibration = 0.1"}
    with pytest.raises(UserError, match=r"\[calibration\] and a share in \[train\]: give one"):
        load_suite(str(suite_file(tmp_path, POINTS, changes)))


@pytest.mark.parametrize(
    ("source", "message"),
    [
        (
            '"synthetic:gaussians"\nsplit = "test"',
            "'calibration' and 'in_domain_test' are the same",
        ),
        ('"synthetic:gaussians"', "'calibration' and 'in_domain' are the same part"),
        ('"synthetic:gaussians-ood"', "'calibration' .* come from one data set"),
    ],
)
def test_calibration_data_that_is_used_elsewhere_is_refused(
    source: str, message: str, tmp_path: Path
) -> None:
    text = f"[calibration]\nsource = {source}\n[outliers]"
    suite = suite_file(tmp_path, POINTS, {"[outliers]": text})
    with pytest.raises(UserError, match=message):
        make_plan(Request(str(suite), tmp_path / "bench"))


def test_an_unknown_member_is_refused_before_anything_is_done(tmp_path: Path) -> None:
    suite = str(suite_file(tmp_path, POINTS))
    with pytest.raises(UserError, match=r"Unknown detector 'dpn-mo'\. Did you mean"):
        make_plan(Request(suite, tmp_path / "bench", detectors=("fisher(dpn-mo,knn)",)))
