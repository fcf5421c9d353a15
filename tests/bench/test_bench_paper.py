"""The paper's figures beside ours."""

import pandas as pd
import pytest

import dpn_plugin
from dpn_plugin.bench import load_suite
from dpn_plugin.bench.paper import against_paper, paper_figures

TASKS = {"C10": "c10", "C100": "c100", "TIM": "tim"}


def one(task: str, /, **wanted: str) -> pd.Series:
    table = paper_figures(task)
    for column, value in wanted.items():
        table = table[table[column] == value]
    assert len(table) == 1
    return table.iloc[0]


@pytest.mark.parametrize("task", TASKS)
def test_every_name_is_one_of_the_suite(task: str) -> None:
    _, suite, _ = load_suite(TASKS[task])
    assert suite.paper_task == task
    table = paper_figures(task)
    assert set(table["dataset"]) - {""} == suite.near.keys() | suite.far.keys()
    assert set(table["method"]) <= set(suite.methods.run)
    assert set(table["detector"]) - {"", "binary"} <= set(dpn_plugin.list_detectors("dpn-*"))
    assert not table.duplicated(["task", "dataset", "method", "detector", "metric"]).any()


def test_figures_as_the_paper_prints_them() -> None:
    tiny = {"task": "ood", "dataset": "tinyimagenet", "detector": "dpn-maxp"}
    found = one("C10", method="baseline", metric="auroc", **tiny)
    assert (found["paper_mean"], found["paper_std"]) == pytest.approx((0.889, 0.0))
    assert one("C10", method="baseline", metric="aupr_out", **tiny)["paper_mean"] == 0.85
    found = one("C100", task="calibration", method="edl")
    assert (found["dataset"], found["metric"]) == ("stl10", "rms_error")
    assert found["paper_mean"] == pytest.approx(0.177)
    assert one("TIM", task="calibration", method="deep-ensemble")["dataset"] == "cifar100"
    wanted = {"task": "gap", "dataset": "stl10", "method": "dpn-fwd"}
    assert one("C10", metric="kl_misclassified_ood", **wanted)["paper_mean"] == 1.6
    wanted = {"task": "gap", "dataset": "lsun", "method": "dpn-minus"}
    assert one("C100", metric="kl_correct_ood", **wanted)["paper_mean"] == 272.0
    wanted = {"dataset": "lsun", "method": "binary", "metric": "auroc"}
    assert one("C100", **wanted)[["task", "detector", "paper_mean"]].tolist() == [
        "ood", "binary", pytest.approx(0.912),
    ]  # fmt: skip
    assert one("C10", method="baseline", metric="accuracy")["task"] == "classification"


def test_our_mean_over_seeds_stands_beside_the_paper_s() -> None:
    key = {"suite": "c10", "backbone": "vgg16_cifar", "method": "baseline", "task": "ood"}
    row = {**key, "detector": "dpn-maxp", "dataset": "tinyimagenet", "metric": "auroc"}
    other = {**row, "dataset": "somewhere-else"}
    ours = [{**row, "seed": seed, "value": value} for seed, value in enumerate((0.88, 0.92))]
    found = against_paper(pd.DataFrame([*ours, {**other, "seed": 0, "value": 0.5}]), "C10")
    assert len(found) == 1
    assert found.iloc[0][["paper_mean", "mean", "difference", "n"]].tolist() == pytest.approx(
        [0.889, 0.9, 0.011, 2]
    )


@pytest.mark.parametrize("task", TASKS)
def test_a_divergence_of_the_paper_stands_beside_both_directions(task: str) -> None:
    table = paper_figures(task)
    table = table[table["task"] == "gap"]
    keys, seen = ["dataset", "method", "paper_mean", "paper_std"], {}
    for source in ("correct", "misclassified"):
        there, back = (
            table[table["metric"] == name][keys].reset_index(drop=True)
            for name in (f"kl_{source}_ood", f"kl_ood_{source}")
        )
        pd.testing.assert_frame_equal(there, back)
        seen[source] = len(there)
    assert seen == dict.fromkeys(("correct", "misclassified"), len(table) // 4)
    assert len(table) == 2 * {"C10": 40, "C100": 30, "TIM": 36}[task]


def test_each_direction_has_its_own_difference() -> None:
    key = {"suite": "c10", "backbone": "vgg16_cifar", "method": "dpn-minus", "task": "gap"}
    row = {**key, "detector": "", "dataset": "lsun", "seed": 0}
    values = {"kl_correct_ood": 20.0, "kl_ood_correct": 23.5}
    ours = pd.DataFrame([{**row, "metric": name, "value": v} for name, v in values.items()])
    found = against_paper(ours, "C10").set_index("metric")
    assert found["paper_mean"].tolist() == [22.5, 22.5]
    assert found["difference"].to_dict() == pytest.approx(
        {"kl_correct_ood": -2.5, "kl_ood_correct": 1.0}
    )
