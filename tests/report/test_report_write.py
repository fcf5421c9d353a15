"""The report beside a benchmark is written again only if its results or its files changed."""

import os
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest
from sample_bench import SampleBench

from dpn_plugin.errors import UserError
from dpn_plugin.report import update_report, write_report


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    sample = SampleBench(methods=("baseline",), seeds=(0,), samples=40)
    out = sample.write(tmp_path_factory.mktemp("bench"))
    for part in ("store", "runs"):  # without outputs there are no figures to draw
        (out / part).rename(out.parent / f"{out.name}-{part}")
    update_report(out)
    return out


def is_written(folder: Path) -> bool:
    before = (folder / "report.sha256").stat().st_ino
    page = update_report(folder)
    assert page == folder / "report.html"
    return (folder / "report.sha256").stat().st_ino != before


def add_line(path: Path) -> None:
    path.write_text(path.read_text("utf-8") + "\n", "utf-8")


def cut_last_line(path: Path) -> None:
    path.write_text("".join(path.read_text("utf-8").splitlines(keepends=True)[:-1]), "utf-8")


def test_a_current_report_is_not_written_again_whatever_its_time_stamp(folder: Path) -> None:
    for stamp in (0, 4_000_000_000):
        os.utime(folder / "report.html", (stamp, stamp))
        assert not is_written(folder)
    assert not (folder / ".report.lock").exists()


@pytest.mark.parametrize(
    ("name", "change"),
    [
        ("bench.json", add_line),
        ("results.csv", add_line),
        ("report.html", add_line),
        ("tables/tables.md", Path.unlink),
        ("report.sha256", cut_last_line),
    ],
)
def test_changed_results_or_a_damaged_file_cause_a_new_report(
    name: str, change: Callable[[Path], None], folder: Path
) -> None:
    change(folder / name)
    assert is_written(folder)
    assert not is_written(folder)


def test_the_hashes_can_be_checked_with_sha256sum(folder: Path) -> None:
    checked = subprocess.run(
        ["sha256sum", "--strict", "-c", "report.sha256"], cwd=folder, capture_output=True, text=True
    )
    assert checked.returncode == 0, checked.stdout
    assert "results.csv: OK" in checked.stdout


def test_a_folder_with_files_of_others_is_refused(folder: Path, tmp_path: Path) -> None:
    (tmp_path / "report.html").write_text("precious")
    with pytest.raises(UserError, match=r"is not empty and holds no report .* report\.html\. Use"):
        write_report(folder, tmp_path)
    assert (tmp_path / "report.html").read_text() == "precious"
    assert len(list(tmp_path.iterdir())) == 1
    for _ in range(2):  # the second time, the folder holds a report of ours
        assert write_report(folder, tmp_path / "new") == tmp_path / "new" / "report.html"
