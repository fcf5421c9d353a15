"""The desk on which all clumsy commands run."""

import os
import sys
from pathlib import Path

import pytest

sys.path.append(str(Path(__file__).parents[1] / "hostile"))
# read once, when the library is imported: no command of these tests may download weights
os.environ.setdefault("HF_HUB_OFFLINE", "1")

from clumsy_campaign import Desk
from clumsy_desk import lay_out, train_runs


@pytest.fixture(scope="session")
def whole_desk(tmp_path_factory: pytest.TempPathFactory) -> Desk:
    """The folder with its files and trained runs, made once."""
    folder = tmp_path_factory.mktemp("clumsy") / "desk"
    folder.mkdir()
    lay_out(folder)
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(folder)
        train_runs(folder)
    return Desk(folder, folder.with_name("pristine"))


@pytest.fixture
def desk(whole_desk: Desk, monkeypatch: pytest.MonkeyPatch) -> Desk:
    """The folder as the current one; its modules can be imported."""
    monkeypatch.chdir(whole_desk.folder)
    monkeypatch.syspath_prepend(whole_desk.folder)
    monkeypatch.setattr(sys, "dont_write_bytecode", True)
    monkeypatch.setenv("PYTHONDONTWRITEBYTECODE", "1")
    for name in (
        "DPN_DATA_ROOT",
        "RANK",
        "WORLD_SIZE",
        "LOCAL_RANK",
        "SLURM_PROCID",
        "SLURM_NTASKS",
    ):
        monkeypatch.delenv(name, raising=False)
    return whole_desk
