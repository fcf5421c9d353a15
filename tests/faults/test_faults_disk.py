"""A disk that is full, files that cannot grow, a folder that cannot be written."""

import os
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest
from dpn_process import Dpn
from folders import FIRST, check_same, content

MEGABYTE = 2**20


def mount(*words: object) -> bool:
    return subprocess.run(["mount", *map(str, words)], capture_output=True).returncode == 0


@pytest.fixture
def disk(tmp_path: Path) -> Iterator[Path]:
    """A small disk of its own."""
    folder = tmp_path / "disk"
    folder.mkdir()
    if not mount("-t", "tmpfs", "-o", "size=64m", "tmpfs", folder):
        pytest.skip("no disk can be mounted here: only root can")
    yield folder
    subprocess.run(["umount", str(folder)], check=True)


def resized(disk: Path, size: int) -> None:
    assert mount("-o", f"remount,rw,size={size // 1024}k", disk)


@pytest.mark.parametrize("share", [5, 20, 40, 60, 75, 85, 95, 99])
def test_a_full_disk(share: int, first: Dpn, disk: Path, record_property) -> None:
    pages = sum(-(-path.stat().st_size // 4096) for path in first.out.rglob("*") if path.is_file())
    size = pages * 4096 * share // 100
    record_property("fault", "full disk")
    record_property("where", f"{size // 1024} KB, {share} % of what is needed")
    resized(disk, size)
    dpn = Dpn(first.suite, disk / "out")
    code = dpn.run()
    record_property("seen", f"exit {code}: {sentence(dpn)}")
    assert code == 2
    assert "No space left on device" in dpn.said
    assert "Traceback" not in dpn.said
    resized(disk, 64 * MEGABYTE)
    assert (again := Dpn(first.suite, dpn.out)).run() == 0, again.said
    check_same(dpn.out, first.out)


@pytest.mark.parametrize("name", [FIRST / "classifier.safetensors", "report.html"], ids=str)
def test_files_that_cannot_grow(name: Path, first: Dpn, tmp_path: Path, record_property) -> None:
    largest = (first.out / name).stat().st_size - 1
    record_property("fault", "files cannot grow")
    record_property("where", f"beyond {largest} bytes")
    dpn = Dpn(first.suite, tmp_path / "out", largest=largest)
    code = dpn.run()
    record_property("seen", f"exit {code}: {sentence(dpn)}")
    assert code == 2
    assert "File too large" in dpn.said
    assert (again := Dpn(first.suite, dpn.out)).run() == 0, again.said
    check_same(dpn.out, first.out)


@pytest.mark.parametrize("state", ["half", "finished"])
def test_a_read_only_folder(state: str, first: Dpn, request, disk: Path, record_property) -> None:
    record_property("fault", "read-only folder")
    record_property("where", f"{state} benchmark")
    out = Path(shutil.copytree(request.getfixturevalue(state), disk / "out"))
    before = content(out)
    assert mount("-o", "remount,ro", disk)
    dpn = Dpn(first.suite, out)
    code = dpn.run()
    record_property("seen", f"exit {code}: {sentence(dpn)}")
    assert code == 2
    assert "Read-only file system" in dpn.said
    assert content(out) == before
    resized(disk, 64 * MEGABYTE)
    assert (again := Dpn(first.suite, out)).run() == 0, again.said
    check_same(out, first.out)


def sentence(dpn: Dpn) -> str:
    """:return: the last thing it said, short enough for a table"""
    said = dpn.said.replace(f"{dpn.out}{os.sep}", "").replace(str(dpn.out), "OUT")
    return said[said.rfind("Error:") :][:110]
