"""Files and folders appear whole or not at all."""

import errno
import os
from pathlib import Path

import pytest

from dpn_plugin._files import (
    check_folder,
    creating_folder,
    file_hash,
    remove_folder,
    replacing,
    write_text,
)
from dpn_plugin.errors import CannotWrite, UserError

ENOSPC = os.strerror(errno.ENOSPC)


def test_a_new_file_is_written_with_its_folders(tmp_path: Path) -> None:
    path = tmp_path / "runs" / "one" / "results.csv"
    write_text(path, "Größe,π\n")
    assert path.read_bytes() == "Größe,π\n".encode()
    assert os.listdir(path.parent) == ["results.csv"]


def test_the_old_content_is_visible_until_the_block_ends(tmp_path: Path) -> None:
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


def test_files_of_killed_writers_are_removed_and_those_of_living_ones_stay(tmp_path: Path) -> None:
    abandoned = tmp_path / ".results.csv.x1.tmp"
    abandoned.write_text("half of the n")
    with replacing(tmp_path / "results.csv") as living:
        living.write_text("slow")
        write_text(tmp_path / "results.csv", "fast")
        assert living.exists()
    assert (tmp_path / "results.csv").read_text() == "slow"
    assert os.listdir(tmp_path) == ["results.csv"]


def test_a_full_disk_is_reported(tmp_path: Path) -> None:
    path = tmp_path / "results.csv"
    write_text(path, "old")
    message = rf"Cannot write .*results\.csv: {ENOSPC}.* unchanged"
    with pytest.raises(CannotWrite, match=message), replacing(path):
        raise OSError(errno.ENOSPC, ENOSPC)
    assert path.read_text() == "old"
    assert os.listdir(tmp_path) == ["results.csv"]


@pytest.mark.parametrize("below", ["results.csv", "deeper/results.csv"])
def test_a_folder_that_cannot_be_created_is_reported(tmp_path: Path, below: str) -> None:
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


def test_a_file_has_the_usual_permissions(tmp_path: Path) -> None:
    write_text(tmp_path / "ours", "")
    (tmp_path / "plain").write_text("")
    modes = {name: (tmp_path / name).stat().st_mode for name in ("ours", "plain")}
    assert modes["ours"] == modes["plain"]


def test_a_path_may_be_a_string(tmp_path: Path) -> None:
    write_text(str(tmp_path / "results.csv"), "new")
    assert (tmp_path / "results.csv").read_text() == "new"


def write_folder(path: Path, content: str, *, replace: bool = False) -> None:
    with creating_folder(path, replace=replace) as temporary:
        (temporary / "file").write_text(content)


def test_a_folder_appears_when_the_block_ends(tmp_path: Path) -> None:
    path = tmp_path / "deep" / "one"
    with creating_folder(path) as temporary:
        (temporary / "file").write_text("new")
        assert not path.exists()
    assert (path / "file").read_text() == "new"
    assert os.listdir(tmp_path / "deep") == ["one"]


@pytest.mark.parametrize(("replace", "expected"), [(False, "old"), (True, "new")])
def test_an_existing_folder_is_replaced_on_request_only(
    replace: bool, expected: str, tmp_path: Path
) -> None:
    write_folder(tmp_path / "one", "old")
    write_folder(tmp_path / "one", "new", replace=replace)
    assert (tmp_path / "one" / "file").read_text() == expected
    assert os.listdir(tmp_path) == ["one"]


@pytest.mark.parametrize("error", [RuntimeError, KeyboardInterrupt, UserError])
def test_no_folder_appears_when_the_block_raises(tmp_path: Path, error: type) -> None:
    with pytest.raises(error), creating_folder(tmp_path / "one") as temporary:  # noqa: PT012
        (temporary / "file").write_text("half of the n")
        raise error
    assert os.listdir(tmp_path) == []


def test_a_full_disk_leaves_the_old_folder(tmp_path: Path) -> None:
    write_folder(tmp_path / "one", "old")
    with (
        pytest.raises(CannotWrite, match=rf"Cannot write .*one: {ENOSPC}"),
        creating_folder(tmp_path / "one", replace=True),
    ):
        raise OSError(errno.ENOSPC, ENOSPC)
    assert (tmp_path / "one" / "file").read_text() == "old"
    assert os.listdir(tmp_path) == ["one"]


def test_a_folder_does_not_replace_a_file(tmp_path: Path) -> None:
    (tmp_path / "one").write_text("a file")
    with pytest.raises(CannotWrite, match=r"Cannot write .*one: "):
        write_folder(tmp_path / "one", "new", replace=True)
    assert (tmp_path / "one").read_text() == "a file"
    assert os.listdir(tmp_path) == ["one"]


def test_a_folder_is_removed_and_one_that_is_missing_is_no_error(tmp_path: Path) -> None:
    write_folder(tmp_path / "one", "old")
    for _ in range(2):
        remove_folder(tmp_path / "one")
        assert os.listdir(tmp_path) == []


def test_the_hash_of_a_file_is_its_sha256(tmp_path: Path) -> None:
    (tmp_path / "a").write_bytes(b"abc")
    expected = "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad"
    assert file_hash(tmp_path / "a") == expected


def test_what_an_interruption_leaves_is_nothing_that_could_be_lost(tmp_path: Path) -> None:
    (tmp_path / "runs" / "network").mkdir(parents=True)
    (tmp_path / "runs" / "network" / "run.json.lock").touch()
    check_folder(tmp_path, "benchmark")
    (tmp_path / "runs" / "network" / "notes.txt").touch()
    with pytest.raises(UserError, match="is not empty and holds no benchmark of dpn-plugin"):
        check_folder(tmp_path, "benchmark")
