"""The values in the tables, the best ones, and the escaping in Markdown, CSV and LaTeX."""

import io
import re
from pathlib import Path

import pandas as pd
import pytest
from sample_bench import SampleBench

from dpn_plugin.report.results import load_results
from dpn_plugin.report.table_text import csv_text, latex_text, markdown_text
from dpn_plugin.report.tables import Table, result_tables


@pytest.fixture(scope="module")
def tables(bench: Path) -> dict[str, Table]:
    return {table.key: table for table in result_tables(load_results([bench]))}


def test_every_task_has_its_tables(tables: dict[str, Table]) -> None:
    ends = {key.removeprefix("digits-test_resnet-") for key in tables}
    assert ends == {
        "ood-auroc", "ood-aupr_in", "ood-aupr_out", "ood-fpr95", "misclassification-auroc",
        "misclassification-aupr", "classification", "calibration", "gap",
    }  # fmt: skip


def test_rows_are_methods_columns_detectors_and_blocks_sets(tables: dict[str, Table]) -> None:
    table = tables["digits-test_resnet-ood-auroc"]
    assert table.columns == ("dpn-maxp", "dpn-entropy", "dpn-mi")
    # the mean of a single near set would be that set again
    titles = ["letters (near)", "Far (mean)", "noise (far)", "textures (far)"]
    assert [block.title for block in table.blocks] == titles
    assert all(list(block.rows) == ["baseline", "oe", "dpn-minus"] for block in table.blocks)


def test_cells_are_the_mean_and_the_sample_deviation_over_seeds(
    bench: Path, tables: dict[str, Table]
) -> None:
    raw = pd.read_csv(bench / "results.csv")
    values = raw[
        raw["method"].eq("oe")
        & raw["detector"].eq("dpn-mi")
        & raw["dataset"].eq("noise")
        & raw["metric"].eq("fpr95")
    ]["value"]
    assert len(values) == 3
    cell = tables["digits-test_resnet-ood-fpr95"].blocks[2].rows["oe"][2]
    assert (cell.mean, cell.n) == (pytest.approx(values.mean()), 3)
    squares = sum((value - values.mean()) ** 2 for value in values)
    assert cell.std == pytest.approx((squares / 2) ** 0.5)
    assert cell.text == f"{100 * values.mean():.1f}"


@pytest.mark.parametrize(("metric", "choose"), [("auroc", max), ("fpr95", min)])
def test_the_best_of_a_block_is_marked_in_the_direction_of_the_metric(
    tables: dict[str, Table], metric: str, choose: type(max)
) -> None:
    for block in tables[f"digits-test_resnet-ood-{metric}"].blocks:
        cells = [cell for row in block.rows.values() for cell in row]
        best = choose(cell.mean for cell in cells)
        marked = {cell.text for cell in cells if cell.best}
        assert marked == {f"{100 * best:.1f}"}


def test_metrics_are_compared_only_within_their_column(tables: dict[str, Table]) -> None:
    table = tables["digits-test_resnet-calibration"]
    for block in table.blocks:
        for column in range(len(table.columns)):
            cells = [row[column] for row in block.rows.values()]
            assert min(cells, key=lambda cell: cell.mean).best


def test_one_seed_has_no_deviation(tmp_path: Path) -> None:
    folder = SampleBench(seeds=(4,)).write(tmp_path)
    tables = result_tables(load_results([folder]))
    cells = [c for t in tables for b in t.blocks for row in b.rows.values() for c in row]
    assert cells
    assert not any(cell.spread for cell in cells)
    assert all("one seed" in table.note for table in tables)
    printed = re.sub(r"so no (±|\$\\pm\$)", "", markdown_text(tables) + latex_text(tables))
    assert "±" not in printed
    assert "pm$" not in printed


def test_a_suite_without_near_sets_has_only_blocks_for_far_sets(tmp_path: Path) -> None:
    folder = SampleBench(near=(), seeds=(0,)).write(tmp_path)
    table = result_tables(load_results([folder]))[0]
    assert [block.title for block in table.blocks] == [
        "Far (mean)",
        "noise (far)",
        "textures (far)",
    ]


def test_csv_can_be_read_back(tables: dict[str, Table]) -> None:
    table = tables["digits-test_resnet-ood-auroc"]
    read = pd.read_csv(io.StringIO(csv_text(table)))
    row = read[read["set"].eq("noise (far)") & read["method"].eq("oe")].iloc[0]
    cell = table.blocks[2].rows["oe"][0]
    assert row["dpn-maxp mean"] == cell.mean
    assert row["dpn-maxp n"] == 3


SPECIAL_NAME = r"a|b_<i>&%$#{}~^\*"


@pytest.fixture(scope="module")
def special_tables(tmp_path_factory: pytest.TempPathFactory) -> list[Table]:
    folder = tmp_path_factory.mktemp("special_tables")
    SampleBench(methods=("baseline", SPECIAL_NAME), far=("<x>_1",), seeds=(0,)).write(folder)
    return result_tables(load_results([folder]))


def test_latex_escapes_special_characters_of_a_name(special_tables: list[Table]) -> None:
    text = latex_text(special_tables)
    escaped = (
        r"a\textbar{}b\_\textless{}i\textgreater{}\&\%\$\#\{\}\textasciitilde{}"
        r"\textasciicircum{}\textbackslash{}*"
    )
    assert escaped in text
    assert SPECIAL_NAME not in text
    rows = [line for line in text.splitlines() if line.startswith(escaped)]
    # every ampersand that is not escaped separates two columns
    separators = [len(re.findall(r"(?<!\\)&", row)) for row in rows]
    assert separators == [len(t.columns) for t in special_tables for _ in t.blocks]


def test_markdown_rows_keep_their_columns(special_tables: list[Table]) -> None:
    text = markdown_text(special_tables)
    rows = [line for line in text.splitlines() if line.startswith(r"| a\|b")]
    bars = [len(re.findall(r"(?<!\\)\|", row)) for row in rows]
    assert bars == [len(t.columns) + 2 for t in special_tables for _ in t.blocks]
    assert "<i>" not in text
