"""One trained run for all tests."""

import shutil
from pathlib import Path

import pytest
from hostile import dpn


@pytest.fixture(scope="session")
def trained(tmp_path_factory: pytest.TempPathFactory) -> Path:
    out = tmp_path_factory.mktemp("trained")
    data = ["--in-domain", "sklearn:digits?classes=0-2", "--limit", 60, "--recipe", "small"]
    network = [
        "--backbone",
        "test_resnet",
        "--method",
        "baseline",
        "--epochs",
        1,
        "--device",
        "cpu",
    ]
    assert dpn("train", *network, *data, "--out", out, seconds=100).exit_code == 0
    return out


@pytest.fixture
def run(trained: Path, tmp_path: Path) -> Path:
    """A copy that a test may damage."""
    return shutil.copytree(trained, tmp_path / "run")


@pytest.fixture
def marker(tmp_path: Path) -> Path:
    """The file that a payload would create."""
    return tmp_path / "payload-ran"
