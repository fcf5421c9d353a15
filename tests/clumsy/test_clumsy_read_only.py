"""Commands that are to write to a folder without permission leave it as it was."""

import os
from collections.abc import Iterator
from pathlib import Path

import pytest
from clumsy_campaign import Case, Desk, parametrised, run_case
from clumsy_others import READ_ONLY


@pytest.fixture
def locked(desk: Desk) -> Iterator[Path]:
    """An empty folder that cannot be written, for the time of a test."""
    folder = desk.folder / "locked"
    folder.mkdir()
    folder.chmod(0o555)
    desk.files["locked"] = "folder"
    try:
        if os.access(folder, os.W_OK):
            pytest.skip("root may write everywhere")
        yield folder
    finally:
        del desk.files["locked"]
        folder.chmod(0o755)
        folder.rmdir()


@parametrised(READ_ONLY)
def test_it_is_refused(case: Case, desk: Desk, locked: Path) -> None:
    run_case(case, desk)
