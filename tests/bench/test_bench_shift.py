"""Covariate shift from end to end: the suite of corrupted digits, its figures, and its refusals."""

import numpy as np
import pandas as pd
import pytest
import torch
from tiny_bench import DIGITS, bench, record, results, suite_file

from dpn_plugin.bench import Request, load_suite_data, make_plan
from dpn_plugin.errors import UserError
from dpn_plugin.evaluation import read_evaluation
from dpn_plugin.outputs import OutputStore
from dpn_plugin.report import write_report
from dpn_plugin.report.figures.shift import shift_figure
from dpn_plugin.report.results import Scope
from dpn_plugin.report.stored_runs import find_runs

SHIFTS = ("noise", "blur", "contrast", "jpeg", "brightness")
TEST = '[in_domain_test]\nsource = "sklearn:digits"\nsplit = "test"\nclasses = { first = 5 }\n'
SHIFT = """
[shift.grainy]
source = "corrupted:sklearn:digits"
split = "test"
classes = { first = 5 }
options = { corruption = "noise", severity = [2, 5] }
"""
CHANGES = {
    '[in_domain]\nsource = "sklearn:digits"\n': (
        f'{SHIFT}{TEST}[in_domain]\nsource = "sklearn:digits"\nsplit = "train"\n'
    )
}


@pytest.fixture(scope="module")
def out(tmp_path_factory):
    """The embedded suite, with one method and one seed."""
    out = tmp_path_factory.mktemp("shift")
    bench("digits-shift", out, methods=("baseline",), seeds=1)
    return out


@pytest.fixture(scope="module")
def shifted(out):
    table = results(out)
    return table[table["task"].eq("shift")].set_index(["metric", "detector", "dataset"])["value"]


def test_accuracy_falls_with_severity(shifted):
    accuracy = shifted["accuracy"][""]
    for shift in SHIFTS:
        values = [accuracy[f"{shift}@{severity}"] for severity in range(1, 6)]
        assert values[0] > 0.95
        assert values[4] < values[2] < values[0] + 0.01
        assert accuracy[shift] == pytest.approx(np.mean(values))
    means = [accuracy[f"shift@{severity}"] for severity in range(1, 6)]
    assert means == sorted(means, reverse=True)
    assert means[4] < 0.7
    assert accuracy["shift"] == pytest.approx(np.mean([accuracy[shift] for shift in SHIFTS]))


def test_more_samples_are_rejected_at_a_higher_severity(shifted):
    rejected = shifted["rejected95"]["dpn-maxp"]
    assert 0.04 < rejected[""] <= 0.05
    assert rejected["noise@1"] < rejected["noise@3"] < rejected["noise@5"]
    assert rejected["shift@1"] < rejected["shift@3"]


def test_calibration_is_reported_as_for_in_domain_data(out, shifted):
    assert {"ece", "rms_error"} < {*shifted.index.get_level_values("metric")}
    table = results(out).set_index(["task", "metric"])["value"]
    clean = table.loc[("calibration", "in_domain_ece")].item()
    assert shifted["ece"][""]["shift@1"] == pytest.approx(clean, abs=0.05)
    assert shifted["ece"][""]["contrast@5"] > 5 * clean


def test_the_full_spectrum_pools_in_domain_and_shifted_samples(out):
    """Counted pair by pair from the stored logits."""
    (folder,) = out.glob("runs/*/*/*")
    keys, store = read_evaluation(folder).outputs, OutputStore(out / "store")

    def scores(key):
        logits = torch.from_numpy(np.array(store.open(key).arrays["logits"])).double()
        return 1 - torch.softmax(logits, dim=1).amax(dim=1)

    inside = torch.cat([scores(keys.in_domain_test), *map(scores, keys.shift.values())])
    outside = scores(keys.near["nine"])
    greater = (outside[:, None] > inside).double() + 0.5 * (outside[:, None] == inside)
    rows = results(out)
    own = rows["task"].eq("full_spectrum") & rows["detector"].eq("dpn-maxp")
    found = rows[own & rows["metric"].eq("auroc")].set_index("dataset")["value"]
    assert found["nine"] == pytest.approx(float(greater.mean()), abs=1e-5)
    assert found["near"] == pytest.approx((found["eight"] + found["nine"]) / 2)
    ood = rows[
        rows["task"].eq("ood") & rows["detector"].eq("dpn-maxp") & rows["metric"].eq("auroc")
    ]
    assert found["near"] < ood.set_index("dataset")["value"]["near"]


def test_the_accuracy_of_the_leaderboard_is_that_of_in_domain_data(out):
    table = pd.read_csv(out / "leaderboard.csv")
    rows = results(out)
    clean = rows[rows["task"].eq("classification")]["value"].item()
    assert len(table) == 6
    assert table["ID ACC"].tolist() == pytest.approx([100 * clean] * 6)


def test_the_record_names_every_set(out):
    shift = record(out)["shift"]
    assert len(shift) == 25
    assert "severity=3" in shift["noise@3"]["selection"]
    assert shift["noise@3"]["samples"] == record(out)["in_domain_test"]["samples"]


def test_the_report_has_severities_in_columns_and_a_curve_for_each_shift(out, shifted, tmp_path):
    page = write_report(out, tmp_path / "report").read_text()
    assert "Covariate shift: Accuracy" in page
    assert "picture-digits-shift-test_resnet-shift" in page
    tables = tmp_path / "report" / "tables"
    table = pd.read_csv(tables / "digits-shift-test_resnet-shift-accuracy.csv", index_col="set")
    assert table.index.tolist() == ["All shifts (mean)", *SHIFTS]
    accuracy = shifted["accuracy"][""]
    assert table.loc["blur", "Severity 4 mean"] == pytest.approx(accuracy["blur@4"])
    assert table.loc["blur", "Mean mean"] == pytest.approx(accuracy["blur"])
    assert table.loc["All shifts (mean)", "Severity 4 mean"] == pytest.approx(accuracy["shift@4"])
    rejected = pd.read_csv(tables / "digits-shift-test_resnet-shift-rejected95.csv")
    own = rejected.set_index("set").loc["noise@5", "dpn-maxp mean"]
    assert own == pytest.approx(shifted["rejected95"]["dpn-maxp"]["noise@5"])
    assert (tables / "digits-shift-test_resnet-full_spectrum-auroc.csv").exists()


def test_the_curves_are_those_of_the_results(out, shifted):
    runs = find_runs([out], Scope("digits-shift", "test_resnet"), ["baseline"])
    axes = shift_figure("key", runs).figure.axes
    assert [each.get_title(loc="left") for each in axes[:5]] == list(SHIFTS)
    severities, accuracy = axes[0].lines[0].get_data()
    assert list(severities) == [0, 1, 2, 3, 4, 5]
    expected = [shifted["accuracy"][""][f"noise@{severity}"] for severity in range(1, 6)]
    assert list(accuracy[1:]) == pytest.approx(expected)
    (detector,) = {axes[5].lines[0].get_label().split(", ")[1]}
    rejected = shifted["rejected95"][detector]
    assert list(axes[5].lines[0].get_ydata())[::5] == [rejected[""], rejected["noise@5"]]


def test_a_repeated_benchmark_computes_nothing(out):
    monitor = bench("digits-shift", out, methods=("baseline",), seeds=1)
    assert not monitor.detectors
    assert not monitor.steps


def test_labels_are_those_of_the_in_domain_classes(tmp_path):
    """A shifted set may lack classes, as ImageNet-R does."""
    text = suite_file(tmp_path, DIGITS, CHANGES).read_text()
    changes = {"classes = { first = 5 }\noptions": "classes = [1, 3]\noptions"}
    path = suite_file(tmp_path, text, changes)
    data = load_suite_data(make_plan(Request(str(path), tmp_path / "out")))
    samples = data.shift["grainy@2"]
    assert samples.labels.unique().tolist() == [1, 3]
    assert samples.classes == data.in_domain.classes


def test_lists_and_limits_reach_every_severity(tmp_path):
    path = suite_file(tmp_path, DIGITS, CHANGES)
    plan = make_plan(Request(str(path), tmp_path / "out", limit=30))
    assert list(plan.suite.shift) == ["grainy@2", "grainy@5"]
    assert {len(each) for each in load_suite_data(plan).shift.values()} == {30}


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        (
            'split = "test"\nclasses = { first = 5 }\noptions',
            'split = "train"\noptions',
            "made of t",
        ),
        ("[shift.grainy]", "[shift.seven]", "near.seven and shift.seven: names of sets must"),
        ("[shift.grainy]", "[shift.near]", "'near' stands for the mean"),
        ("[shift.grainy]", "[shift]", "every set needs a name"),
        ("[shift.grainy]", '[shift."grainy@2"]', "'grainy@2' ends in a severity"),
        (
            "[shift.grainy]",
            '[shift.x]\nsource = "folder:x"\n[shift."x@2"]\nsource = "folder:y"\n[shift.grainy]',
            "'x' stands for the mean of its severities",
        ),
        ("severity = [2, 5]", "severity = 0", "shift.grainy: severity must be"),
        (
            "classes = { first = 5 }\noptions",
            "classes = [0, 9]\noptions",
            "class '9', which is not",
        ),
        (
            '"corrupted:sklearn:digits"\nsplit = "test"\nclasses = { first = 5 }',
            '"corrupted:sklearn:digits"\nclasses = { first = 5 }',
            "are also in the training data",
        ),
    ],
)
def test_sets_that_make_no_sense_are_refused(tmp_path, old, new, message):
    path = suite_file(tmp_path, suite_file(tmp_path, DIGITS, CHANGES).read_text(), {old: new})
    with pytest.raises(UserError, match=message):
        load_suite_data(make_plan(Request(str(path), tmp_path / "out")))


def test_samples_that_were_trained_on_can_be_dropped(tmp_path):
    changes = {
        'split = "test"\nclasses = { first = 5 }\noptions': "classes = { first = 5 }\noptions"
    }
    text = suite_file(tmp_path, DIGITS, CHANGES).read_text()
    path = suite_file(tmp_path, f'overlap = "drop"\n{text}', changes)
    plan = make_plan(Request(str(path), tmp_path / "out"))
    with pytest.warns(UserWarning, match="are made of training samples; they were dropped"):
        data = load_suite_data(plan)
    left = data.shift["grainy@5"]
    assert len(left) + data.dropped["grainy@5"] == 901
    assert data.dropped["grainy@5"] == len(data.in_domain)


def test_corrupted_training_classes_are_not_ood(tmp_path):
    changes = {
        **CHANGES,
        '[near.seven]\nsource = "sklearn:digits"\nclasses = [7]\n': (
            '[near.seven]\nsource = "corrupted:sklearn:digits?corruption=noise&severity=5"\n'
            "classes = [4]\n"
        ),
    }
    with pytest.raises(UserError, match="come from one data set"):
        make_plan(Request(str(suite_file(tmp_path, DIGITS, changes)), tmp_path / "out"))


def test_a_missing_shifted_set_can_be_skipped(tmp_path):
    text = suite_file(tmp_path, DIGITS, CHANGES).read_text()
    path = suite_file(tmp_path, text + '[shift.photos]\nsource = "folder:photos"\n')
    plan = make_plan(Request(str(path), tmp_path / "out"))
    with pytest.raises(UserError, match="--skip-missing"):
        load_suite_data(plan)
    data = load_suite_data(plan, skip_missing=True)
    assert data.skipped.keys() == {"photos"}
    assert data.shift.keys() == {"grainy@2", "grainy@5"}
