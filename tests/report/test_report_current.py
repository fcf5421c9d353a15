"""A report is written again when it is not of the results beside it, and only then."""

import os
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest
from sample_bench import SampleBench

from dpn_plugin.report import current_report


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    sample = SampleBench(methods=("baseline",), seeds=(0,), samples=40)
    out = sample.write(tmp_path_factory.mktemp("bench"))
    for part in ("store", "runs"):  # without outputs there are no pictures to draw
        (out / part).rename(out.parent / f"{out.name}-{part}")
    current_report(out)
    return out


def is_written(folder: Path) -> bool:
    before = (folder / "report.sha256").stat().st_ino
    page = current_report(folder)
    assert page == folder / "report.html"
    return (folder / "report.sha256").stat().st_ino != before


def add_a_line(path: Path) -> None:
    path.write_text(path.read_text("utf-8") + "\n", "utf-8")


def cut_the_last_line(path: Path) -> None:
    path.write_text("".join(path.read_text("utf-8").splitlines(keepends=True)[:-1]), "utf-8")


def test_a_current_report_is_left_alone_whatever_the_clock_says(folder: Path) -> None:
    for stamp in (0, 4_000_000_000):
        os.utime(folder / "report.html", (stamp, stamp))
        assert not is_written(folder)


@pytest.mark.parametrize(
    ("name", "change"),
    [
        ("bench.json", add_a_line),
        ("results.csv", add_a_line),
        ("report.html", add_a_line),
        ("tables/tables.md", Path.unlink),
        ("report.sha256", cut_the_last_line),
    ],
)
def test_other_results_or_a_damaged_part_mean_a_new_one(
    name: str, change: Callable[[Path], None], folder: Path
) -> None:
    change(folder / name)
    assert is_written(folder)
    assert not is_written(folder)


def test_the_list_is_one_that_sha256sum_reads(folder: Path) -> None:
    checked = subprocess.run(
        ["sha256sum", "--strict", "-c", "report.sha256"], cwd=folder, capture_output=True, text=True
    )
    assert checked.returncode == 0, checked.stdout
    assert "results.csv: OK" in checked.stdout
