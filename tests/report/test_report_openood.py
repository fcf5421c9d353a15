"""``dpn report --against openood``: published rows beside ours, or a sentence why not."""

import io
import re
import shutil
import subprocess
from pathlib import Path

import pandas as pd
import pytest
from sample_bench import SampleBench
from typer.testing import CliRunner

from dpn_plugin._records import write_record
from dpn_plugin.bench import (
    OPENOOD_BENCHMARKS,
    compare_with_openood,
    find_openood_benchmark,
    load_suite,
    openood_figures,
    read_bench_record,
)
from dpn_plugin.bench.openood import POSTPROCESSORS, TRAININGS
from dpn_plugin.cli import app
from dpn_plugin.errors import UserError
from dpn_plugin.metrics import RESULT_COLUMNS, over_seeds
from dpn_plugin.plugins import registry
from dpn_plugin.report import write_report

FULL = {"MSP": (54.35, 66.11)}


def bench_of(name: str, folder: Path, **changes) -> Path:
    """An invented benchmark with the data of one of OpenOOD's."""
    own = OPENOOD_BENCHMARKS[name]
    sets = {
        group: [each.split("_", 1)[1] for each in getattr(own, group)] for group in ("near", "far")
    }
    bench = SampleBench(
        suite=f"openood-{name}", near=tuple(sets["near"]), far=tuple(sets["far"]), **changes
    )
    bench.write(folder)
    shutil.rmtree(folder / "store")  # there is nothing to draw, which is quicker
    table = bench.record().model_dump(exclude={"hash"})
    table["in_domain_test"]["source"] = f"openood:{own.test}"
    for group in ("near", "far"):
        for each, source in zip(table["sets"][group].values(), getattr(own, group), strict=True):
            each["source"] = f"openood:{source}"
    write_record(folder / "bench.json", type(bench.record()).model_validate(table))
    return folder


def results_of(rows: list[tuple]) -> pd.DataFrame:
    """Figures of test_resnet over two seeds: task, method, detector, dataset, metric, value."""
    table = [
        (
            "openood",
            "test_resnet",
            method,
            seed,
            task,
            detector,
            dataset,
            metric,
            value + 0.01 * seed,
        )
        for task, method, detector, dataset, metric, value in rows
        for seed in (0, 1)
    ]
    return over_seeds(pd.DataFrame(table, columns=list(RESULT_COLUMNS)))


OURS = [
    ("classification", "baseline", "", "", "accuracy", 0.86),
    ("ood", "baseline", "dpn-maxp", "near", "auroc", 0.80),
    ("ood", "baseline", "dpn-maxp", "far", "auroc", 0.90),
    ("ood", "baseline", "dpn-mi", "near", "auroc", 0.81),
    ("ood", "baseline", "dpn-mi", "far", "auroc", 0.91),
    ("ood", "dpn-minus", "dpn-maxp", "near", "auroc", 0.82),
    ("ood", "dpn-minus", "dpn-maxp", "far", "auroc", 0.92),
]


def test_a_row_stands_beside_the_published_one():
    table = compare_with_openood(results_of(OURS), "imagenet200")
    row = table[table["counterpart"].eq(True)].squeeze()
    assert (row["method"], row["detector"], row["postprocessor"]) == ("baseline", "dpn-maxp", "MSP")
    assert (row["openood_near"], row["openood_far"], row["openood_accuracy"]) == (
        83.34,
        90.13,
        86.37,
    )
    assert row["near"] == pytest.approx(80.5)
    assert row["near_std"] == pytest.approx(0.5**0.5)
    assert row["difference_near"] == pytest.approx(80.5 - 83.34)
    assert row["accuracy"] == pytest.approx(86.5)
    assert row["n"] == 2


def test_rows_without_a_counterpart_are_listed_as_such():
    table = compare_with_openood(results_of(OURS), "imagenet200")
    alone = table[table["counterpart"].eq(False)]
    ours = alone[alone["method"].notna()]
    assert {*zip(ours["method"], ours["detector"], strict=True)} == {
        ("baseline", "dpn-mi"),
        ("dpn-minus", "dpn-maxp"),
    }
    assert ours[["training", "openood_near", "difference_near"]].isna().all(axis=None)
    theirs = alone[alone["method"].isna()]
    published = openood_figures("imagenet200")
    assert len(theirs) == published["spectrum"].eq("ood").sum() - 1
    assert set(theirs["spectrum"]) == {"ood"}


def test_the_full_spectrum_has_figures_of_its_own():
    full = [("full_spectrum", *row[1:]) for row in OURS]
    table = compare_with_openood(results_of([*OURS, *full]), "imagenet200")
    row = table[table["counterpart"].eq(True) & table["spectrum"].eq("full_spectrum")].squeeze()
    assert (row["openood_near"], row["openood_far"]) == FULL["MSP"]


@pytest.mark.parametrize(
    ("backbone", "architecture", "near"),
    [("vit_base_patch16_224.augreg_in1k", "ViT-B/16", 73.52), ("test_resnet", "ResNet50", 76.02)],
)
def test_the_architecture_is_ours_or_the_usual_one(backbone, architecture, near):
    summary = results_of(OURS).assign(backbone=backbone)
    table = compare_with_openood(summary, "imagenet1k")
    row = table[table["counterpart"].eq(True)].squeeze()
    assert (row["architecture"], row["openood_near"]) == (architecture, near)


def test_every_name_that_is_compared_exists_on_both_sides():
    published = pd.concat([openood_figures(name) for name in OPENOOD_BENCHMARKS])
    assert set(POSTPROCESSORS.values()) <= set(published["postprocessor"])
    assert set(TRAININGS.values()) <= set(published["training"])
    assert set(POSTPROCESSORS) <= set(registry.list_detectors())
    near = published[["near", "far"]]
    assert near.notna().all(axis=None)
    assert near.stack().between(10, 100).all()


@pytest.mark.parametrize("name", OPENOOD_BENCHMARKS)
def test_the_suites_are_recognised_by_their_data(name, tmp_path):
    suite = load_suite(f"openood-{name}")[1]
    own = OPENOOD_BENCHMARKS[name]
    assert suite.in_domain_test.source == f"openood:{own.test}"
    for group in ("near", "far"):
        assert {each.source for each in suite.groups[group].values()} == {
            f"openood:{each}" for each in getattr(own, group)
        }
    folder = bench_of(name, tmp_path / name, seeds=(0,), methods=("baseline",))
    record = read_bench_record(folder)
    assert find_openood_benchmark(record) == name
    del record.sets["far"][next(iter(record.sets["far"]))]
    assert find_openood_benchmark(record) is None


def test_the_page_and_the_tables_name_the_source(tmp_path):
    folder = bench_of("cifar10", tmp_path / "bench", seeds=(0, 1), limit=500)
    other = SampleBench(seeds=(0,)).write(tmp_path / "digits")
    shutil.rmtree(other / "store")
    page = write_report([folder, other], tmp_path / "out", against="openood").read_text()
    section = page[page.index('id="openood"') :]
    assert "CIFAR-10 beside OpenOOD" in section
    assert "https://zjysteven.github.io/OpenOOD/, state of 2025-07-19" in section
    assert "500 samples of every set at most" in section
    assert "&#39;digits&#39; cannot be set beside OpenOOD" in section
    row = re.search(r"<tr><td>OOD</td><td>test_resnet</td><td>baseline</td><td>dpn-maxp.*", section)
    assert "CrossEntropy + MSP (ResNet18)" in row[0]
    assert "88.03 ± 0.25" in row[0]
    tables = tmp_path / "out" / "tables" / "openood"
    assert {path.suffix for path in tables.iterdir()} == {".csv", ".md", ".tex"}
    figures = pd.read_csv(io.StringIO((tables / "openood-cifar10-openood.csv").read_text()))
    assert figures["counterpart"].sum() == 2  # Max.P of baseline and of oe
    assert figures["source"].str.contains("2025-07-19").all()
    assert "OE + MSP" in (tables / "openood-cifar10-openood.md").read_text()
    write_report([folder, other], tmp_path / "out")
    assert not list(tables.iterdir())


def test_a_suite_that_is_no_benchmark_of_openood_is_refused(tmp_path):
    folder = SampleBench(seeds=(0,)).write(tmp_path / "digits")
    with pytest.raises(UserError, match="'digits' cannot be set beside OpenOOD's leaderboard"):
        write_report(folder, against="openood")
    done = CliRunner().invoke(app, ["report", str(folder), "--against", "openod"])
    assert done.exit_code == 2
    assert "Did you mean 'openood'" in done.output


@pytest.mark.skipif(shutil.which("pdflatex") is None, reason="needs pdflatex")
def test_the_latex_table_compiles(tmp_path):
    folder = bench_of("cifar10", tmp_path / "bench", seeds=(0,))
    write_report(folder, tmp_path / "out", against="openood")
    (path,) = (tmp_path / "out" / "tables" / "openood").glob("*.tex")
    needed = re.match(r"% needs (\\usepackage{[a-z,]+})\n", path.read_text())[1]
    document = (
        rf"\documentclass{{article}}{needed}\begin{{document}}\input{{{path}}}\end{{document}}"
    )
    command = ["pdflatex", "-interaction=nonstopmode", "-halt-on-error", document]
    ended = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=False)
    assert ended.returncode == 0, ended.stdout[-600:]
