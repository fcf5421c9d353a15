"""The headline: which method wins, and its lead over the others."""

from pathlib import Path

import pandas as pd
import pytest
from sample_bench import SampleBench

from dpn_plugin.metrics import RESULT_COLUMNS, over_seeds
from dpn_plugin.report.ranking import headlines, leaderboard_rows
from dpn_plugin.report.results import Results, load_results


def results(aurocs: dict[tuple[str, str], list[float]]) -> Results:
    """Return results with the AUROC of every seed, by method and detector, on the one far set."""
    rows = [
        ("s", "net", method, seed, "ood", detector, "far", "auroc", value)
        for (method, detector), values in aurocs.items()
        for seed, value in enumerate(values)
    ]
    record = SampleBench(suite="s", backbone="net", near=(), far=("noise",)).record()
    summary = over_seeds(pd.DataFrame(rows, columns=RESULT_COLUMNS))
    return Results((Path("s"),), (record,), summary, pd.DataFrame())


def test_the_winner_is_compared_with_the_next_method_and_with_the_baseline() -> None:
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
    assert found.pairs == 5
    # not with its own second detector
    assert found.runner_up.over.method == "oe"
    assert found.runner_up.points == pytest.approx(6)
    assert found.baseline.over.detector == "dpn-maxp"
    assert found.baseline.points == pytest.approx(16)


def test_one_seed_does_not_beat_the_mean_of_three() -> None:
    (found,) = headlines(
        results({("one-seed", "d"): [0.99], ("three-seeds", "d"): [0.9, 0.9, 0.9]})
    )
    assert found.winner.method == "three-seeds"
    assert found.pairs == 1  # the other did not compete


def test_a_missing_value_does_not_win_and_a_single_method_has_no_lead() -> None:
    (found,) = headlines(results({("missing", "d"): [float("nan")], ("only", "d"): [0.7]}))
    assert found.winner.method == "only"
    assert found.runner_up is None
    assert found.baseline is None


def test_a_group_of_one_set_has_one_row(tmp_path: Path) -> None:
    single = SampleBench(suite="single", methods=("oe",), seeds=(0,)).write(tmp_path / "single")
    pair = SampleBench(suite="pair", methods=("oe",), seeds=(0,), near=("letters", "kanji"))
    rows = leaderboard_rows(load_results([single, pair.write(tmp_path / "pair")]))
    shown = {
        suite: {row.dataset_title for row in rows if (row.suite, row.detector) == (suite, "dpn-mi")}
        for suite in ("single", "pair")
    }
    far = {"Far (mean)", "noise", "textures"}
    assert shown["single"] == {"letters (near)", *far}
    assert shown["pair"] == {"Near (mean)", "letters", "kanji", *far}
    assert len(rows) == 3 * (4 + 6)


def test_a_set_without_a_mean_of_its_group_keeps_its_row(tmp_path: Path) -> None:
    folder = SampleBench(methods=("oe",), seeds=(0,)).write(tmp_path)
    rows = pd.read_csv(folder / "results.csv")
    rows[rows["dataset"].ne("near")].to_csv(folder / "results.csv", index=False)
    found = leaderboard_rows(load_results([folder]))
    assert "letters" in {row.dataset for row in found}
