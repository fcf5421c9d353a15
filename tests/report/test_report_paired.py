"""Paired differences in the report: from stored scores, and "ahead" only where it is so."""

import csv
import io
import re
import shutil
from pathlib import Path

import pandas as pd
import pytest
from sample_bench import DETECTORS, LOGIT_DROPS, SampleBench

from dpn_plugin.metrics import PairedDifference
from dpn_plugin.report import write_report
from dpn_plugin.report.paired import PairedRow, paired_rows
from dpn_plugin.report.paired_text import (
    paired_csv,
    paired_latex,
    paired_markdown,
    paired_sentences,
    points,
)
from dpn_plugin.report.results import Scope, load_results


@pytest.fixture(scope="module")
def rows(bench: Path) -> list[PairedRow]:
    return paired_rows(load_results([bench]))


def test_the_reference_is_the_best_pair_and_the_figures_are_those_of_the_results(
    bench: Path, rows: list[PairedRow]
) -> None:
    raw = pd.read_csv(bench / "results.csv")
    raw = raw[raw["task"].eq("ood") & raw["metric"].eq("auroc")]
    means = raw.groupby(["dataset", "method", "detector"])["value"].mean()
    for row in rows:
        assert row.reference == means[row.dataset].idxmax()
        assert row.reference_auroc == pytest.approx(means[row.dataset].max(), abs=1e-6)
        assert row.auroc == pytest.approx(means[row.dataset][row.other], abs=1e-6)
        assert row.paired.difference == pytest.approx(row.reference_auroc - row.auroc, abs=1e-6)
        assert row.paired.seeds == 3


def test_groups_and_the_sets_of_several_are_compared(rows: list[PairedRow]) -> None:
    assert {row.dataset for row in rows} == {"near", "far", "noise", "textures"}


def test_every_method_and_every_detector_is_compared_with_the_best(rows: list[PairedRow]) -> None:
    far = [row for row in rows if row.dataset == "far"]
    pairs = [far[0].reference, *(row.other for row in far)]
    assert {method for method, _ in pairs} == {"baseline", "oe", "dpn-minus"}
    assert {detector for _, detector in pairs} == set(DETECTORS)
    assert ("baseline", "dpn-maxp") in pairs


def test_a_reference_can_be_named(bench: Path) -> None:
    found = paired_rows(load_results([bench]), ("baseline", "dpn-maxp"))
    assert {row.reference for row in found} == {("baseline", "dpn-maxp")}
    assert "behind" in {row.paired.verdict for row in found if row.other[0] == "dpn-minus"}


def test_what_is_compared_can_be_named(bench: Path) -> None:
    others = [("oe", "dpn-maxp"), ("missing", "dpn-mi"), ("baseline", "dpn-entropy")]
    found = paired_rows(load_results([bench]), ("dpn-minus", "dpn-mi"), others)
    assert {row.other for row in found} == {others[0], others[2]}
    assert paired_rows(load_results([bench]), ("missing", "dpn-mi"), others) == []


def test_without_stored_scores_nothing_is_compared_and_nobody_is_ahead(
    bench: Path, tmp_path: Path
) -> None:
    folder = shutil.copytree(bench, tmp_path / "bench")
    shutil.rmtree(folder / "store")
    assert paired_rows(load_results([folder])) == []
    page = write_report(folder).read_text("utf-8")
    assert "points above" in page
    assert not re.search(r"points\s+ahead of|is ahead of", page)


def test_the_page_says_ahead_where_the_interval_excludes_zero(reported: Path) -> None:
    page = (reported / "report.html").read_text("utf-8")
    assert "points ahead of" in page
    assert "95 % interval of the difference +" in page
    assert "is ahead of" in page
    assert 'href="#paired"' in page


def test_equal_methods_are_undecided(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(LOGIT_DROPS, "same", LOGIT_DROPS["oe"])
    folder = SampleBench(methods=("oe", "same")).write(tmp_path)
    found = [row for row in paired_rows(load_results([folder])) if row.dataset == "near"]
    verdicts = {row.paired.verdict for row in found if row.reference[0] != row.other[0]}
    assert verdicts == {"undecided"}


def test_the_files_hold_every_row(reported: Path, rows: list[PairedRow]) -> None:
    table = list(csv.DictReader(io.StringIO((reported / "tables/paired.csv").read_text("utf-8"))))
    assert len(table) == len(rows)
    assert table[0]["verdict"] == rows[0].paired.verdict
    assert float(table[0]["low"]) == pytest.approx(rows[0].paired.low, abs=1e-6)
    markdown = (reported / "tables/paired.md").read_text("utf-8")
    assert markdown.count("\n| ") == len(rows) + 2  # the heads, and the rule below
    latex = (reported / "tables/paired.tex").read_text("utf-8")
    assert latex.count(r"\\") == len(rows) + 2


def _row(low: float, high: float, other: str) -> PairedRow:
    paired = PairedDifference((low + high) / 2, low, high, 3)
    scope = Scope("suite", "net")
    return PairedRow(scope, "near", ("oe", "knn"), 0.9, (other, "knn"), 0.9, paired)


def test_sentences_count_leads_and_name_what_is_undecided() -> None:
    rows = [_row(0.01, 0.03, "a"), _row(-0.01, 0.02, "b"), _row(0.0, 0.02, "c")]
    assert paired_sentences(rows) == [
        "Near OOD: oe with knn is ahead of 1 of the 3 others that it is compared with; undecided "
        "are b with knn, c with knn."
    ]
    assert paired_sentences(rows[:1])[0].endswith("1 of the 1 others that it is compared with.")
    assert paired_sentences([]) == []


def test_names_are_escaped_in_every_format() -> None:
    rows = [_row(-0.01, 0.02, "=a|b_{$")]
    assert "'=a|b_{$" in paired_csv(rows)
    assert r"=a\|b\_\{\$" in paired_markdown(rows)
    assert r"=a\textbar{}b\_\{\$" in paired_latex(rows)
    assert "$-$1.00" in paired_latex(rows)


def test_points_have_a_sign_unless_they_are_zero() -> None:
    shown = [points(each) for each in (0.0123, -0.0123, 0.00001)]
    assert shown == ["+1.23", "\N{MINUS SIGN}1.23", "0.00"]
