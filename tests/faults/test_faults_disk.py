"""A full disk, a limit on the size of files, and a read-only folder."""

import os
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest
from dpn_process import Dpn
from folders import FIRST, check_same, content

MEGABYTE = 2**20


def mount(*arguments: object) -> bool:
    return subprocess.run(["mount", *map(str, arguments)], capture_output=True).returncode == 0


@pytest.fixture
def disk(tmp_path: Path) -> Iterator[Path]:
    """A small disk of its own."""
    folder = tmp_path / "disk"
    folder.mkdir()
    if not mount("-t", "tmpfs", "-o", "size=64m", "tmpfs", folder):
        pytest.skip("only root can mount a disk")
    yield folder
    subprocess.run(["umount", str(folder)], check=True)


def resize(disk: Path, size: int) -> None:
    assert mount("-o", f"remount,rw,size={size // 1024}k", disk)


@pytest.mark.parametrize("share", [5, 20, 40, 60, 75, 85, 95, 99])
def test_a_full_disk(share: int, reference: Dpn, disk: Path, record_property) -> None:
    pages = sum(
        -(-path.stat().st_size // 4096) for path in reference.out.rglob("*") if path.is_file()
    )
    size = pages * 4096 * share // 100
    record_property("fault", "full disk")
    record_property("where", f"{size // 1024} KB, {share} % of what is needed")
    resize(disk, size)
    dpn = Dpn(reference.suite, disk / "out")
    code = dpn.run()
    record_property("observed", f"exit {code}: {last_message(dpn)}")
    assert code == 2
    assert "No space left on device" in dpn.output
    assert "Traceback" not in dpn.output
    resize(disk, 64 * MEGABYTE)
    assert (again := Dpn(reference.suite, dpn.out)).run() == 0, again.output
    check_same(dpn.out, reference.out)


@pytest.mark.parametrize("name", [FIRST / "classifier.safetensors", "report.html"], ids=str)
def test_files_that_cannot_grow(
    name: Path, reference: Dpn, tmp_path: Path, record_property
) -> None:
    largest = (reference.out / name).stat().st_size - 1
    record_property("fault", "files cannot grow")
    record_property("where", f"beyond {largest} bytes")
    dpn = Dpn(reference.suite, tmp_path / "out", largest=largest)
    code = dpn.run()
    record_property("observed", f"exit {code}: {last_message(dpn)}")
    assert code == 2
    assert "File too large" in dpn.output
    assert (again := Dpn(reference.suite, dpn.out)).run() == 0, again.output
    check_same(dpn.out, reference.out)


@pytest.mark.parametrize("state", ["half", "finished"])
def test_a_read_only_folder(
    state: str, reference: Dpn, request, disk: Path, record_property
) -> None:
    record_property("fault", "read-only folder")
    record_property("where", f"{state} benchmark")
    out = Path(shutil.copytree(request.getfixturevalue(state), disk / "out"))
    before = content(out)
    assert mount("-o", "remount,ro", disk)
    dpn = Dpn(reference.suite, out)
    code = dpn.run()
    record_property("observed", f"exit {code}: {last_message(dpn)}")
    assert code == 2
    assert "Read-only file system" in dpn.output
    assert content(out) == before
    resize(disk, 64 * MEGABYTE)
    assert (again := Dpn(reference.suite, out)).run() == 0, again.output
    check_same(out, reference.out)


def last_message(dpn: Dpn) -> str:
    """Return the last message, short enough for a table."""
    output = dpn.output.replace(f"{dpn.out}{os.sep}", "").replace(str(dpn.out), "OUT")
    return output[output.rfind("Error:") :][:110]
