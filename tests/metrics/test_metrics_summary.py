"""Mean and deviation over seeds."""

import math
import statistics

import pandas as pd
import pytest

from dpn_plugin.errors import UserError
from dpn_plugin.metrics import RESULT_COLUMNS, over_seeds


def results(*rows):
    """Return results of rows (method, seed, detector, value)."""
    return pd.DataFrame(
        [
            ("digits", "resnet18", method, seed, "ood", detector, "far", "auroc", value)
            for method, seed, detector, value in rows
        ],
        columns=RESULT_COLUMNS,
    )


def test_mean_and_sample_deviation_over_seeds():
    values = [0.9, 0.8, 0.95]
    summary = over_seeds(results(*(("oe", seed, "msp", v) for seed, v in enumerate(values))))
    assert list(summary.columns) == [
        *(c for c in RESULT_COLUMNS if c not in ("seed", "value")),
        "mean",
        "std",
        "n",
    ]
    assert len(summary) == 1
    assert summary["mean"][0] == pytest.approx(statistics.mean(values))
    assert summary["std"][0] == pytest.approx(statistics.stdev(values))
    assert summary["n"][0] == 3


def test_a_single_seed_has_no_deviation():
    summary = over_seeds(results(("oe", 0, "msp", 0.9)))
    assert math.isnan(summary["std"][0])
    assert summary["n"][0] == 1


def test_methods_are_separate_and_in_order_and_rows_without_detector_count():
    summary = over_seeds(
        results(("oe", 0, None, 0.9), ("baseline", 0, None, 0.1), ("oe", 1, None, 0.7))
    )
    assert list(summary["method"]) == ["oe", "baseline"]
    assert list(summary["n"]) == [2, 1]


def test_a_missing_figure_is_ignored():
    summary = over_seeds(results(("oe", 0, "msp", 0.9), ("oe", 1, "msp", math.nan)))
    assert summary["mean"][0] == 0.9
    assert summary["n"][0] == 1


def test_a_seed_that_comes_twice_is_refused():
    with pytest.raises(UserError, match=r"two figures for .*seed=0"):
        over_seeds(results(("oe", 0, "msp", 0.9), ("oe", 0, "msp", 0.8)))


def test_missing_columns_are_named():
    with pytest.raises(UserError, match="seed, value"):
        over_seeds(results().drop(columns=["seed", "value"]))
