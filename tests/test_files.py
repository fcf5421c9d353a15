"""Files appear whole or not at all."""

import errno
import os
from pathlib import Path

import pytest

from dpn_plugin.errors import UserError
from dpn_plugin.files import replacing, write_text


def test_a_new_file_appears_with_its_folders(tmp_path: Path) -> None:
    path = tmp_path / "runs" / "one" / "results.csv"
    write_text(path, "Größe,π\n")
    assert path.read_bytes() == "Größe,π\n".encode()
    assert os.listdir(path.parent) == ["results.csv"]


def test_the_old_content_is_seen_until_the_block_ends(tmp_path: Path) -> None:
    path = tmp_path / "results.csv"
    write_text(path, "old")
    with replacing(path) as temporary:
        temporary.write_text("new")
        assert temporary.parent == path.parent
        assert path.read_text() == "old"
    assert path.read_text() == "new"
    assert os.listdir(tmp_path) == ["results.csv"]


@pytest.mark.parametrize("error", [RuntimeError, KeyboardInterrupt])
def test_the_old_file_stays_when_the_block_raises(tmp_path: Path, error: type) -> None:
    path = tmp_path / "results.csv"
    write_text(path, "old")
    with pytest.raises(error), replacing(path) as temporary:  # noqa: PT012
        temporary.write_text("half of the n")
        raise error
    assert path.read_text() == "old"
    assert os.listdir(tmp_path) == ["results.csv"]


def test_no_file_appears_when_the_block_raises(tmp_path: Path) -> None:
    with pytest.raises(ZeroDivisionError), replacing(tmp_path / "results.csv"):
        _ = 1 / 0
    assert os.listdir(tmp_path) == []


def test_what_a_killed_writer_left_goes_and_what_a_living_one_writes_stays(tmp_path: Path) -> None:
    dead = tmp_path / ".results.csv.x1.tmp"
    dead.write_text("half of the n")
    with replacing(tmp_path / "results.csv") as living:
        living.write_text("slow")
        write_text(tmp_path / "results.csv", "fast")
        assert living.exists()
    assert (tmp_path / "results.csv").read_text() == "slow"
    assert os.listdir(tmp_path) == ["results.csv"]


def test_a_full_disk_is_told_in_a_sentence(tmp_path: Path) -> None:
    path = tmp_path / "results.csv"
    write_text(path, "old")
    message = rf"Cannot write .*results\.csv: {os.strerror(errno.ENOSPC)}.* unchanged"
    with pytest.raises(UserError, match=message), replacing(path):
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
    assert path.read_text() == "old"
    assert os.listdir(tmp_path) == ["results.csv"]


@pytest.mark.parametrize("below", ["results.csv", "deeper/results.csv"])
def test_a_folder_that_cannot_be_is_told_in_a_sentence(tmp_path: Path, below: str) -> None:
    (tmp_path / "file").write_text("not a folder")
    with pytest.raises(UserError, match=r"Cannot write .*results\.csv: (Not a directory|File exi)"):
        write_text(tmp_path / "file" / below, "new")
    assert os.listdir(tmp_path) == ["file"]


def test_a_folder_is_not_replaced_by_a_file(tmp_path: Path) -> None:
    (tmp_path / "results.csv").mkdir()
    with pytest.raises(UserError, match="Cannot write"):
        write_text(tmp_path / "results.csv", "new")
    assert os.listdir(tmp_path) == ["results.csv"]
    assert (tmp_path / "results.csv").is_dir()


def test_the_file_has_the_permissions_of_any_other(tmp_path: Path) -> None:
    write_text(tmp_path / "ours", "")
    (tmp_path / "plain").write_text("")
    modes = {name: (tmp_path / name).stat().st_mode for name in ("ours", "plain")}
    assert modes["ours"] == modes["plain"]


def test_a_path_may_be_a_string(tmp_path: Path) -> None:
    write_text(str(tmp_path / "results.csv"), "new")
    assert (tmp_path / "results.csv").read_text() == "new"
