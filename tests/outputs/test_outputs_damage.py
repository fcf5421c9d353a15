"""Damaged entries are computed again; failures, kills and other writers leave no part of one."""

import json
import subprocess
import sys
import threading
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
import torch
from sample_outputs import KEY, OTHER_KEY, batches, leftovers, visible

from dpn_plugin._records import json_hash
from dpn_plugin.outputs import OutputStore


def truncate(folder: Path) -> Path:
    path = folder / "logits.npy"
    path.write_bytes(path.read_bytes()[:-1])
    return path


def flip_a_bit(folder: Path) -> Path:
    path = folder / "features.npy"
    content = bytearray(path.read_bytes())
    content[-3] ^= 1
    path.write_bytes(content)
    return path


def remove(folder: Path) -> Path:
    (folder / "labels.npy").unlink()
    return folder / "labels.npy"


def write_garbage(folder: Path) -> Path:
    (folder / "entry.json").write_bytes(b"\xff{not json")
    return folder / "entry.json"


def write_a_list(folder: Path) -> Path:
    (folder / "entry.json").write_text("[]")
    return folder / "entry.json"


def edit_without_hash(folder: Path) -> Path:
    path = folder / "entry.json"
    path.write_text(path.read_text().replace('"split": "test"', '"split": "x"'))
    return path


def edit_entry(folder: Path, edit: Callable[[dict], object]) -> None:
    """Edit ``entry.json`` and compute its hash again."""
    entry = json.loads((folder / "entry.json").read_text())
    edit(entry)
    del entry["sha256"]
    (folder / "entry.json").write_text(json.dumps({"sha256": json_hash(entry), **entry}))


def edit_the_shape(folder: Path) -> Path:
    edit_entry(folder, lambda entry: entry["arrays"]["logits"].update(shape=[16, 4]))
    return folder / "logits.npy"


def edit_the_weights(folder: Path) -> Path:
    edit_entry(folder, lambda entry: entry["key"].update(weights="x"))
    return folder / "entry.json"


def add_a_part_to_the_key(folder: Path) -> Path:
    edit_entry(folder, lambda entry: entry["key"].update(unknown="x"))
    return folder / "entry.json"


def point_outside(folder: Path) -> Path:
    def edit(entry: dict) -> None:
        entry["arrays"]["../../secret"] = entry["arrays"].pop("labels")

    edit_entry(folder, edit)
    return folder / "entry.json"


def write_another_format(folder: Path) -> Path:
    edit_entry(folder, lambda entry: entry.update(format=1))
    return folder / "entry.json"


def remove_the_entry(folder: Path) -> Path:
    (folder / "entry.json").unlink()
    return folder / "entry.json"


DAMAGES = [
    truncate,
    flip_a_bit,
    remove,
    write_garbage,
    write_a_list,
    edit_without_hash,
    edit_the_shape,
    edit_the_weights,
    add_a_part_to_the_key,
    point_outside,
    write_another_format,
    remove_the_entry,
]


@pytest.mark.parametrize("damage", DAMAGES)
def test_a_damaged_entry_is_logged_removed_and_can_be_written_again(
    store: OutputStore, caplog, damage: Callable[[Path], Path]
) -> None:
    store.write(KEY, batches())
    damaged = damage(store.root / KEY.hash)
    assert store.open(KEY.hash) is None
    assert len(caplog.records) == 1
    assert str(damaged) in caplog.text
    assert visible(store.root) == []
    store.write(KEY, batches())
    assert store.open(KEY.hash).arrays["logits"].shape == (15, 4)
    assert leftovers(store.root) == []


def test_writing_replaces_a_damaged_entry(store: OutputStore, caplog) -> None:
    store.write(KEY, batches())
    truncate(store.root / KEY.hash)
    assert store.write(KEY, batches()).arrays["logits"].shape == (15, 4)
    assert len(caplog.records) == 1


def test_files_that_were_swapped_between_entries_are_detected(store: OutputStore, caplog) -> None:
    store.write(KEY, batches())
    store.write(OTHER_KEY, batches(seed=1))
    one, other = (store.root / key.hash / "logits.npy" for key in (KEY, OTHER_KEY))
    one.rename(store.root / "aside")
    other.rename(one)
    (store.root / "aside").rename(other)
    assert store.open(KEY.hash) is None
    assert store.open(OTHER_KEY.hash) is None
    assert str(one) in caplog.text
    assert str(other) in caplog.text


def test_an_entry_under_the_name_of_another_is_detected(store: OutputStore) -> None:
    store.write(KEY, batches())
    (store.root / KEY.hash).rename(store.root / OTHER_KEY.hash)
    assert store.open(OTHER_KEY.hash) is None


def test_a_failure_in_the_data_leaves_nothing(store: OutputStore) -> None:
    def failing():
        yield from batches(2)
        raise RuntimeError("the data ended badly")

    with pytest.raises(RuntimeError, match="ended badly"):
        store.write(KEY, failing())
    assert store.open(KEY.hash) is None
    assert visible(store.root) == []
    assert leftovers(store.root) == []


def test_a_file_missing_in_the_data_is_not_reported_as_a_failure_to_write(
    store: OutputStore,
) -> None:
    def failing():
        yield from batches(1)
        raise FileNotFoundError("image_7.png")

    with pytest.raises(FileNotFoundError, match="image_7"):
        store.write(KEY, failing())
    assert leftovers(store.root) == []


WRITE_AND_DIE = """
import os, signal, sys, torch
from dpn_plugin.outputs import OutputKey, OutputStore
def batches():
    yield {"logits": torch.zeros(1000, 100)}
    os.kill(os.getpid(), signal.SIGKILL)
OutputStore(sys.argv[1]).write(OutputKey("w", "d", None, "test"), batches())
"""


def test_leftovers_of_a_killed_writer_are_not_read_and_are_removed(store: OutputStore) -> None:
    run = subprocess.run([sys.executable, "-c", WRITE_AND_DIE, str(store.root)], check=False)
    assert run.returncode == -9
    assert visible(store.root) == []
    assert len(leftovers(store.root)) == 2  # the folder and its lock
    store.write(KEY, batches())
    assert leftovers(store.root) == []


def test_two_writers_at_once_leave_one_whole_entry(store: OutputStore) -> None:
    barrier = threading.Barrier(2, timeout=30)

    def slow():
        barrier.wait()
        yield from batches()
        barrier.wait()

    results = []
    threads = [
        threading.Thread(target=lambda: results.append(store.write(KEY, slow()))) for _ in range(2)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    expected = torch.cat([batch["logits"] for batch in batches()])
    for stored in results:
        np.testing.assert_array_equal(stored.arrays["logits"], expected)
    assert len(results) == 2
    assert visible(store.root) == [KEY.hash]
    assert leftovers(store.root) == []


def test_a_second_writer_does_not_remove_the_files_of_the_first(store: OutputStore) -> None:
    def interrupted():
        yield from batches(1)
        store.write(OTHER_KEY, batches())
        yield from batches(1)

    assert store.write(KEY, interrupted()).arrays["logits"].shape == (10, 4)
