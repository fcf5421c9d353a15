"""Locks are held by one process at a time; temporary files without a living owner are removed."""

import multiprocessing
import os
import subprocess
import sys
import threading
from collections.abc import Callable
from pathlib import Path

import pytest

from dpn_plugin._files import creating_folder, locked, remove_abandoned, replacing
from dpn_plugin.errors import CannotWrite, UserError

WRITE_AND_DIE = """
import os, signal, sys
from pathlib import Path
from dpn_plugin._files import creating_folder, replacing
with replacing(Path(sys.argv[1]) / "file") as file, creating_folder(Path(sys.argv[1]) / "one") as f:
    file.write_text("half")
    (f / "deep").mkdir()
    os.kill(os.getpid(), signal.SIGKILL)
"""


@pytest.mark.parametrize("recursive", [True, False])
def test_leftovers_of_a_killed_process_are_removed(recursive: bool, tmp_path: Path) -> None:
    folder = tmp_path / "deep" if recursive else tmp_path
    run = subprocess.run([sys.executable, "-c", WRITE_AND_DIE, str(folder)], check=False)
    assert run.returncode == -9
    assert len(os.listdir(folder)) == 4  # a file and a folder, each with its lock
    (folder / "other.tmp").write_text("not ours")
    remove_abandoned(tmp_path)
    assert (os.listdir(folder) == ["other.tmp"]) != recursive
    remove_abandoned(tmp_path, recursive=True)
    assert os.listdir(folder) == ["other.tmp"]


def test_temporary_files_of_living_processes_are_not_removed(tmp_path: Path) -> None:
    with replacing(tmp_path / "file") as file, creating_folder(tmp_path / "one") as folder:
        file.write_text("new")
        remove_abandoned(tmp_path)
        assert file.exists()
        assert folder.exists()
    assert sorted(os.listdir(tmp_path)) == ["file", "one"]


def test_a_missing_folder_has_nothing_abandoned(tmp_path: Path) -> None:
    remove_abandoned(tmp_path / "missing", recursive=True)
    assert not (tmp_path / "missing").exists()


def test_a_lock_is_created_with_its_folder_and_removed(tmp_path: Path) -> None:
    with locked(tmp_path / "deep" / ".lock"):
        assert os.listdir(tmp_path / "deep") == [".lock"]
    assert not (tmp_path / "deep").exists()
    (tmp_path / "old").mkdir()
    with locked(tmp_path / "old" / ".lock"):
        assert os.listdir(tmp_path / "old") == [".lock"]
    assert os.listdir(tmp_path / "old") == []


def test_a_lock_that_is_held_is_refused_with_the_message(tmp_path: Path) -> None:
    with (
        locked(tmp_path / ".lock"),
        pytest.raises(UserError, match="another one is at work"),
        locked(tmp_path / ".lock", busy="another one is at work"),
    ):
        pass
    with locked(tmp_path / ".lock", busy="another one is at work"):
        pass


def test_a_lock_is_released_when_the_block_raises(tmp_path: Path) -> None:
    with pytest.raises(ZeroDivisionError), locked(tmp_path / ".lock", busy="busy"):
        _ = 1 / 0
    with locked(tmp_path / ".lock", busy="busy"):
        pass
    assert os.listdir(tmp_path) == []


def test_an_error_of_the_block_is_not_reported_as_a_failure_to_lock(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError, match=r"image\.png"), locked(tmp_path / ".lock"):
        raise FileNotFoundError("image.png")


def test_a_lock_that_cannot_be_created_is_reported(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("not a folder")
    with (
        pytest.raises(CannotWrite, match=r"Cannot write .*\.lock: (Not a directory|File exi)"),
        locked(tmp_path / "file" / ".lock"),
    ):
        pass


def count_up(lock: Path, counter: Path, times: int) -> None:
    for _ in range(times):
        with locked(lock):
            counter.write_text(str(int(counter.read_text()) + 1))


@pytest.mark.parametrize("worker", [threading.Thread, multiprocessing.get_context("fork").Process])
def test_a_lock_without_a_message_waits(worker: Callable, tmp_path: Path) -> None:
    lock, counter = tmp_path / ".lock", tmp_path / "counter"
    counter.write_text("0")
    workers = [worker(target=count_up, args=(lock, counter, 30)) for _ in range(3)]
    for each in workers:
        each.start()
    for each in workers:
        each.join(60)
    assert counter.read_text() == "90"
    assert os.listdir(tmp_path) == ["counter"]


def test_the_lock_of_a_killed_process_is_free(tmp_path: Path) -> None:
    code = (
        "import os, signal, sys; from pathlib import Path; from dpn_plugin._files import locked\n"
        "with locked(Path(sys.argv[1])): os.kill(os.getpid(), signal.SIGKILL)"
    )
    run = subprocess.run([sys.executable, "-c", code, str(tmp_path / ".lock")], check=False)
    assert run.returncode == -9
    assert os.listdir(tmp_path) == [".lock"]
    with locked(tmp_path / ".lock", busy="busy"):
        pass
    assert os.listdir(tmp_path) == []
