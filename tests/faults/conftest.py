"""Benchmark folders in which faults are caused, and a table of all faults at the end."""

import re
import shutil
import signal
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parents[1] / "bench"))
pytest.register_assert_rewrite("folders")

from dpn_process import Dpn  # noqa: E402
from folders import DIGITS, IMAGES_SUITE, POINTS, SECOND, SUITE  # noqa: E402
from tiny_bench import suite_file  # noqa: E402


@pytest.fixture(scope="session")
def workspace(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("faults")


@pytest.fixture(scope="session")
def suite(workspace: Path) -> Path:
    return suite_file(workspace, POINTS, SUITE)


@pytest.fixture(scope="session")
def reference(suite: Path, workspace: Path) -> Dpn:
    """A benchmark without any fault."""
    dpn = Dpn(suite, workspace / "reference")
    assert dpn.run() == 0, dpn.output
    return dpn


@pytest.fixture(scope="session")
def images(workspace: Path) -> Dpn:
    """A benchmark of images without any fault."""
    folder = workspace / "images"
    folder.mkdir()
    dpn = Dpn(suite_file(folder, DIGITS, IMAGES_SUITE), folder / "reference")
    assert dpn.run() == 0, dpn.output
    return dpn


@pytest.fixture(scope="session")
def finished(reference: Dpn) -> Path:
    return reference.out


@pytest.fixture(scope="session")
def half(reference: Dpn, workspace: Path) -> Path:
    """Killed when the second run has one network, and two checkpoints of the next."""
    saved = re.compile(rf"os\.rename {SECOND}/checkpoints/member-1/\.step-[^/]*")
    renames = [i for i, event in enumerate(reference.events) if saved.fullmatch(event)]
    dpn = Dpn(reference.suite, workspace / "half", at=renames[1] + 5)
    assert dpn.run() == -signal.SIGKILL
    return dpn.out


@pytest.fixture
def copied(tmp_path: Path) -> Callable[[Path], Path]:
    def copy(folder: Path) -> Path:
        return Path(shutil.copytree(folder, tmp_path / "out"))

    return copy


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    rows = [("FAULT", "WHERE", "OBSERVED", "SURVIVED")]
    for outcome, word in (("passed", "yes"), ("failed", "NO"), ("skipped", "skipped")):
        for report in terminalreporter.getreports(outcome):
            properties = dict(report.user_properties)
            fault = properties.get("fault", report.nodeid.rpartition("::")[2])
            rows.append((fault, properties.get("where", ""), properties.get("observed", ""), word))
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    terminalreporter.section("faults tried and survived")
    for row in rows:
        cells = [cell.ljust(width) for cell, width in zip(row, widths, strict=True)]
        terminalreporter.write_line("  ".join(cells).rstrip())
    survived = sum(row[-1] == "yes" for row in rows)
    terminalreporter.write_line(f"{survived} of {len(rows) - 1} survived")
