"""An empty store."""

from pathlib import Path

import pytest

from dpn_plugin.outputs import OutputStore


@pytest.fixture
def store(tmp_path: Path) -> OutputStore:
    return OutputStore(tmp_path / "outputs")
