"""The folders that faults are tried on, and the table of all faults at the end."""

import shutil
import signal
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parents[1] / "bench"))
pytest.register_assert_rewrite("folders")

from dpn_process import Dpn  # noqa: E402
from folders import POINTS, SECOND, SUITE  # noqa: E402
from tiny_bench import suite_file  # noqa: E402


@pytest.fixture(scope="session")
def place(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("faults")


@pytest.fixture(scope="session")
def suite(place: Path) -> Path:
    return suite_file(place, POINTS, SUITE)


@pytest.fixture(scope="session")
def first(suite: Path, place: Path) -> Dpn:
    """A benchmark that was left alone."""
    dpn = Dpn(suite, place / "undisturbed")
    assert dpn.run() == 0, dpn.said
    return dpn


@pytest.fixture(scope="session")
def finished(first: Dpn) -> Path:
    return first.out


@pytest.fixture(scope="session")
def half(first: Dpn, place: Path) -> Path:
    """Killed when the second unit has one network, and two checkpoints of the next."""
    wanted = f"os.rename {SECOND}/checkpoints/member-1/.writing"
    moments = [i for i, event in enumerate(first.events) if event.startswith(wanted)]
    dpn = Dpn(first.suite, place / "half", at=moments[1] + 5)
    assert dpn.run() == -signal.SIGKILL
    return dpn.out


@pytest.fixture
def copied(tmp_path: Path) -> Callable[[Path], Path]:
    def copy(folder: Path) -> Path:
        return Path(shutil.copytree(folder, tmp_path / "out"))

    return copy


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    rows = [("FAULT", "WHERE", "WHAT WAS SEEN", "SURVIVED")]
    for outcome, word in (("passed", "yes"), ("failed", "NO"), ("skipped", "not tried")):
        for report in terminalreporter.getreports(outcome):
            told = dict(report.user_properties)
            fault = told.get("fault", report.nodeid.rpartition("::")[2])
            rows.append((fault, told.get("where", ""), told.get("seen", ""), word))
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    terminalreporter.section("faults tried and survived")
    for row in rows:
        cells = [cell.ljust(width) for cell, width in zip(row, widths, strict=True)]
        terminalreporter.write_line("  ".join(cells).rstrip())
    survived = sum(row[-1] == "yes" for row in rows)
    terminalreporter.write_line(f"{survived} of {len(rows) - 1} survived")
