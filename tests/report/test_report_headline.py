"""Who is called the winner."""

from pathlib import Path

import pandas as pd
import pytest

from dpn_plugin.metrics import RESULT_COLUMNS, over_seeds
from dpn_plugin.report.headline import headlines
from dpn_plugin.report.load import Results
from dpn_plugin.report.record import DataRecord, Record


def results(figures: dict[tuple[str, str], list[float]]) -> Results:
    """:param figures: AUROC of every seed, by method and detector, on the one far set"""
    rows = [
        ("s", "net", method, seed, "ood", detector, "far", "auroc", value)
        for (method, detector), values in figures.items()
        for seed, value in enumerate(values)
    ]
    noise = DataRecord(source="npz:noise.npz")
    record = Record(
        suite="s", title="S", backbones=["net"], methods=[], detectors=[], seeds=[],
        sets={"near": {}, "far": {"noise": noise}}, in_domain=noise,
    )  # fmt: skip
    summary = over_seeds(pd.DataFrame(rows, columns=RESULT_COLUMNS))
    return Results((Path("s"),), (record,), summary, pd.DataFrame())


def test_the_winner_is_compared_with_the_next_method_and_with_the_yardstick() -> None:
    (found,) = headlines(
        results(
            {
                ("baseline", "dpn-maxp"): [0.80, 0.82],
                ("baseline", "dpn-mi"): [0.84, 0.86],
                ("oe", "dpn-maxp"): [0.90, 0.92],
                ("dpn-minus", "dpn-maxp"): [0.94, 0.96],
                ("dpn-minus", "dpn-mi"): [0.96, 0.98],
            }
        )
    )
    assert (found.group, found.sets) == ("far", ("noise",))
    assert (found.winner.method, found.winner.detector, found.winner.n) == (
        "dpn-minus",
        "dpn-mi",
        2,
    )
    # its own second detector is no rival
    assert found.runner_up.entrant.method == "oe"
    assert found.runner_up.margin == pytest.approx(6)
    assert not found.runner_up.within_spread
    assert found.baseline.entrant.detector == "dpn-maxp"
    assert found.baseline.margin == pytest.approx(16)


def test_a_lead_below_the_spread_of_the_difference_is_told() -> None:
    (found,) = headlines(results({("a", "d"): [0.80, 0.90], ("b", "d"): [0.79, 0.89]}))
    assert found.runner_up.margin == pytest.approx(1)
    assert found.runner_up.within_spread


def test_one_seed_does_not_beat_the_mean_of_three() -> None:
    (found,) = headlines(results({("lucky", "d"): [0.99], ("steady", "d"): [0.9, 0.9, 0.9]}))
    assert found.winner.method == "steady"


def test_a_missing_figure_wins_nothing_and_alone_there_is_no_rival() -> None:
    (found,) = headlines(results({("nothing", "d"): [float("nan")], ("only", "d"): [0.7]}))
    assert found.winner.method == "only"
    assert found.runner_up is None
    assert found.baseline is None
