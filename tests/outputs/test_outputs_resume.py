"""An interrupted pass is continued after its last whole chunk, and gives the same files."""

import os
import resource
import shutil
import threading
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
import torch
from child_processes import kill_self, run_in_child, run_in_two_processes
from sample_outputs import KEY, leftovers, visible
from torch import Tensor

from dpn_plugin._distributed import Processes
from dpn_plugin.errors import CannotWrite
from dpn_plugin.outputs import OutputStore, forward_pass
from dpn_plugin.outputs.forward_pass import BATCH, ForwardPass

#: four chunks of two batches and a shorter one
ROWS = 8 * BATCH + 40
BATCHES = 9
PART = f".{KEY.hash}.part"


@pytest.fixture(autouse=True)
def _short_chunks(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(forward_pass, "CHUNK", 2)


class Counted:
    """Gives outputs that depend on the number of the batch, and counts them."""

    def __init__(self, fail_at: int | None = None, fail: Callable[[], object] = kill_self) -> None:
        self.computed: list[int] = []
        self.fail_at, self.fail = fail_at, fail

    def __call__(self, start: int, step: int) -> Iterator[dict[str, Tensor]]:
        for number in range(start, BATCHES, step):
            if number == self.fail_at:
                self.fail()
            self.computed.append(number)
            rows = min(BATCH, ROWS - number * BATCH)
            generator = torch.Generator().manual_seed(number)
            labels = torch.randint(-1, 4, (rows,), generator=generator)
            yield {"logits": torch.randn(rows, 5, generator=generator), "labels": labels}


def run_pass(root: Path, outputs: Counted, processes: Processes | None = None) -> Counted:
    here = processes or Processes(torch.device("cpu"))
    ForwardPass(OutputStore(root), KEY, ROWS, outputs, here).run()
    return outputs


def content(root: Path) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in (root / KEY.hash).iterdir()}


@pytest.fixture
def at_once(tmp_path: Path) -> dict[str, bytes]:
    """The files of an entry that was written without chunks."""
    OutputStore(tmp_path / "once").write(KEY, Counted()(0, 1))
    return content(tmp_path / "once")


def killed_pass(root: Path, batch: int) -> None:
    forward_pass.CHUNK = 2
    run_pass(root, Counted(batch))


def fail_with(error: Exception) -> Callable[[], object]:
    def fail() -> None:
        raise error

    return fail


def test_chunks_give_the_files_of_an_entry_that_was_written_at_once(
    tmp_path: Path, at_once: dict[str, bytes]
) -> None:
    assert run_pass(tmp_path, Counted()).computed == list(range(BATCHES))
    assert content(tmp_path) == at_once
    assert leftovers(tmp_path) == []


@pytest.mark.parametrize(("killed_at", "first"), [(1, 0), (2, 2), (7, 6), (8, 8)])
def test_a_killed_pass_does_the_rest(
    tmp_path: Path, at_once: dict[str, bytes], killed_at: int, first: int
) -> None:
    assert run_in_child(killed_pass, tmp_path / "store", killed_at) == -9
    assert OutputStore(tmp_path / "store").open(KEY.hash) is None
    assert run_pass(tmp_path / "store", Counted()).computed == list(range(first, BATCHES))
    assert content(tmp_path / "store") == at_once
    assert leftovers(tmp_path / "store") == []


def test_an_error_of_the_data_keeps_whole_chunks_and_is_not_one_of_writing(tmp_path: Path) -> None:
    missing = fail_with(FileNotFoundError("image_7.png"))
    with pytest.raises(FileNotFoundError, match="image_7"):
        run_pass(tmp_path, Counted(5, missing))
    assert run_pass(tmp_path, Counted()).computed == list(range(4, BATCHES))


def test_an_error_in_the_first_chunk_leaves_nothing(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError):
        run_pass(tmp_path, Counted(1, fail_with(FileNotFoundError("image_7.png"))))
    assert list(tmp_path.iterdir()) == []


def test_a_full_disk_keeps_whole_chunks_and_nothing_of_the_next(
    tmp_path: Path, at_once: dict[str, bytes]
) -> None:
    root, limits = tmp_path / "store", resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (5 * BATCH * 20, limits[1]))
    try:
        with pytest.raises(CannotWrite, match=rf"Cannot write .*/{KEY.hash}: File too large"):
            run_pass(root, Counted())
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, limits)
    assert visible(root) == []
    assert (root / PART / "logits.npy").stat().st_size == 128 + 4 * BATCH * 20
    assert run_pass(root, Counted()).computed == list(range(4, BATCHES))
    assert content(root) == at_once


def flip_a_bit_of_the_second_chunk(folder: Path) -> None:
    path = folder / "logits.npy"
    changed = bytearray(path.read_bytes())
    changed[128 + 3 * BATCH * 20] ^= 1
    path.write_bytes(changed)


def truncate_the_second_chunk(folder: Path) -> None:
    os.truncate(folder / "labels.npy", 128 + 3 * BATCH * 8)


def flip_a_bit_of_the_record(folder: Path) -> None:
    path = folder / "chunks.json"
    path.write_text(path.read_text().replace('"rows": 512', '"rows": 513', 1))


def remove_an_array(folder: Path) -> None:
    (folder / "labels.npy").unlink()


def take_the_record_of_another_key(folder: Path) -> None:
    path = folder / "chunks.json"
    path.write_text(path.read_text().replace('"split": "test"', '"split": "train"'))


def empty_a_header(folder: Path) -> None:
    with (folder / "logits.npy").open("r+b") as file:
        file.write(b"\0" * 128)


@pytest.mark.parametrize(
    ("damage", "first"),
    [
        (flip_a_bit_of_the_second_chunk, 2),
        (truncate_the_second_chunk, 2),
        (flip_a_bit_of_the_record, 0),
        (take_the_record_of_another_key, 0),
        (remove_an_array, 0),
        (empty_a_header, 6),  # it is written again
    ],
)
def test_damaged_chunks_are_computed_again(
    tmp_path: Path,
    at_once: dict[str, bytes],
    caplog: pytest.LogCaptureFixture,
    damage: Callable[[Path], None],
    first: int,
) -> None:
    root = tmp_path / "store"
    with pytest.raises(FileNotFoundError):
        run_pass(root, Counted(7, fail_with(FileNotFoundError("image_7.png"))))
    damage(root / PART)
    assert run_pass(root, Counted()).computed == list(range(first, BATCHES))
    assert content(root) == at_once
    assert ("damaged" in caplog.text) == (first < 6)


def test_a_link_in_the_place_of_a_file_is_not_followed(tmp_path: Path) -> None:
    root = tmp_path / "store"
    with pytest.raises(FileNotFoundError):
        run_pass(root, Counted(7, fail_with(FileNotFoundError("image_7.png"))))
    mine = tmp_path / "mine.npy"
    shutil.move(root / PART / "logits.npy", mine)
    before = mine.read_bytes()
    (root / PART / "logits.npy").symlink_to(mine)
    assert run_pass(root, Counted()).computed == list(range(BATCHES))
    assert mine.read_bytes() == before


@pytest.mark.parametrize("function", ["write_entry", "move_into_place"])
def test_a_pass_that_was_interrupted_at_its_end_computes_nothing_again(
    tmp_path: Path, at_once: dict[str, bytes], monkeypatch: pytest.MonkeyPatch, function: str
) -> None:
    with monkeypatch.context() as patch:
        interrupt = fail_with(KeyboardInterrupt())
        patch.setattr(f"dpn_plugin.outputs.unfinished.{function}", lambda *_: interrupt())
        with pytest.raises(KeyboardInterrupt):
            run_pass(tmp_path / "store", Counted())
    assert visible(tmp_path / "store") == []
    assert run_pass(tmp_path / "store", Counted()).computed == []
    assert content(tmp_path / "store") == at_once
    assert leftovers(tmp_path / "store") == []


def test_a_second_process_waits_and_finds_what_the_first_one_wrote(tmp_path: Path) -> None:
    began, second = threading.Event(), Counted()
    waiting = threading.Thread(target=lambda: began.wait(30) and run_pass(tmp_path, second))
    waiting.start()
    first = run_pass(tmp_path, Counted(3, began.set))
    waiting.join(30)
    assert first.computed == list(range(BATCHES))
    assert second.computed == []
    assert leftovers(tmp_path) == []


def test_a_set_of_one_chunk_leaves_nothing_when_it_is_interrupted(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(forward_pass, "CHUNK", BATCHES)
    with pytest.raises(FileNotFoundError):
        run_pass(tmp_path, Counted(8, fail_with(FileNotFoundError("image_7.png"))))
    assert list(tmp_path.iterdir()) == []


def one_of_two(rank: int, root: Path, limit: int) -> None:
    forward_pass.CHUNK = 1
    if limit and rank == 0:
        resource.setrlimit(resource.RLIMIT_FSIZE, (limit, resource.RLIM_INFINITY))
    outputs = Counted()
    try:
        run_pass(root, outputs, Processes.join("cpu"))
    except CannotWrite:
        (root.parent / f"failed-{rank}").touch()
    (root.parent / f"computed-{rank}").write_text(str(outputs.computed))


def test_two_processes_share_a_pass_and_continue_one(
    tmp_path: Path, at_once: dict[str, bytes]
) -> None:
    root = tmp_path / "store"
    assert run_in_two_processes(one_of_two, root, 5 * BATCH * 20) == [0, 0]
    assert {path.name for path in tmp_path.glob("failed-*")} == {"failed-0", "failed-1"}
    assert run_in_two_processes(one_of_two, root, 0) == [0, 0]
    assert (tmp_path / "computed-0").read_text() == "[4, 6, 8]"
    assert (tmp_path / "computed-1").read_text() == "[5, 7]"
    assert content(root) == at_once
