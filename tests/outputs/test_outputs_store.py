"""The store: what goes in comes out, and nothing else ever does."""

import json
import resource
import subprocess
import sys
import threading

import numpy as np
import pytest
import torch

from dpn_plugin.errors import UserError
from dpn_plugin.outputs import Ingredients, OutputStore

BASE = Ingredients("w" * 64, "d" * 64, {"size": [3, 32, 32]}, "test")


def ingredients(weights="w" * 64):
    return Ingredients(weights, BASE.data, BASE.transform, BASE.split)


def batches(count=3, rows=5, seed=0):
    generator = torch.Generator().manual_seed(seed)
    for _ in range(count):
        yield {
            "logits": torch.randn(rows, 4, generator=generator),
            "features": torch.randn(rows, 2, 3, generator=generator, dtype=torch.float64),
            "labels": torch.randint(-1, 4, (rows,), generator=generator),
        }


def visible(root):
    return sorted(path.name for path in root.iterdir() if not path.name.startswith("."))


def leftovers(root):
    return list(root.glob(".*.tmp"))


@pytest.fixture
def store(tmp_path):
    return OutputStore(tmp_path / "outputs")


def test_what_is_written_is_read(store):
    store.write(BASE, batches())
    stored = store.open(BASE.key)
    written = list(batches())
    assert stored.ingredients == BASE
    assert stored.arrays.keys() == {"logits", "features", "labels"}
    for name, array in stored.arrays.items():
        whole = torch.cat([batch[name] for batch in written]).numpy()
        np.testing.assert_array_equal(array, whole)
        assert array.dtype == whole.dtype


def test_arrays_are_mapped_and_cannot_be_changed(store):
    logits = store.write(BASE, batches()).arrays["logits"]
    assert isinstance(logits, np.memmap)
    with pytest.raises(ValueError, match="read-only"):
        logits[0] = 0


def test_plain_numpy_reads_the_files(store):
    store.write(BASE, batches())
    logits = np.load(store.root / BASE.key / "logits.npy", allow_pickle=False)
    np.testing.assert_array_equal(logits, torch.cat([b["logits"] for b in batches()]))


def test_a_batch_of_another_size_may_follow(store):
    stored = store.write(BASE, [*batches(1, rows=5), *batches(1, rows=2)])
    assert stored.arrays["logits"].shape == (7, 4)


def test_bfloat16_is_widened_without_loss(store):
    values = torch.randn(6, 3).bfloat16()
    stored = store.write(BASE, [{"logits": values}])
    np.testing.assert_array_equal(stored.arrays["logits"], values.float().numpy())


def test_an_unknown_key_opens_nothing(store):
    assert store.open(BASE.key) is None


@pytest.mark.parametrize(
    "other",
    [
        Ingredients("v" * 64, BASE.data, BASE.transform, "test"),
        Ingredients(BASE.weights, "e" * 64, BASE.transform, "test"),
        Ingredients(BASE.weights, BASE.data, {"size": [3, 64, 64]}, "test"),
        Ingredients(BASE.weights, BASE.data, BASE.transform, "train"),
        Ingredients(BASE.weights, BASE.data, BASE.transform, "test", {"passes": 10}),
    ],
)
def test_every_ingredient_changes_the_key(store, other):
    store.write(BASE, batches())
    assert store.open(other.key) is None


def test_the_key_does_not_depend_on_the_order_of_a_description():
    one = Ingredients("w", "d", {"a": 1, "b": 2}, "test")
    two = Ingredients("w", "d", {"b": 2, "a": 1}, "test")
    assert one.key == two.key


def test_ingredients_that_are_not_json_are_refused():
    with pytest.raises(TypeError, match="JSON"):
        _ = Ingredients("w", "d", {"mean": torch.zeros(3)}, "test").key


def truncate(folder):
    path = folder / "logits.npy"
    path.write_bytes(path.read_bytes()[:-1])
    return path


def flip_a_bit(folder):
    path = folder / "features.npy"
    content = bytearray(path.read_bytes())
    content[-3] ^= 1
    path.write_bytes(content)
    return path


def remove(folder):
    (folder / "labels.npy").unlink()
    return folder / "labels.npy"


def write_garbage(folder):
    (folder / "entry.json").write_bytes(b"\xff{not json")
    return folder / "entry.json"


def write_a_list(folder):
    (folder / "entry.json").write_text("[]")
    return folder / "entry.json"


def edit_the_shape(folder):
    entry = json.loads((folder / "entry.json").read_text())
    entry["arrays"]["logits"]["shape"][0] += 1
    (folder / "entry.json").write_text(json.dumps(entry))
    return folder / "logits.npy"


def edit_the_weights(folder):
    entry = json.loads((folder / "entry.json").read_text())
    entry["ingredients"]["weights"] = "x"
    (folder / "entry.json").write_text(json.dumps(entry))
    return folder / "entry.json"


def point_outside(folder):
    entry = json.loads((folder / "entry.json").read_text())
    entry["arrays"]["../../secret"] = entry["arrays"].pop("labels")
    (folder / "entry.json").write_text(json.dumps(entry))
    return folder / "entry.json"


def remove_the_entry(folder):
    (folder / "entry.json").unlink()
    return folder / "entry.json"


DAMAGES = [
    truncate,
    flip_a_bit,
    remove,
    write_garbage,
    write_a_list,
    edit_the_shape,
    edit_the_weights,
    point_outside,
    remove_the_entry,
]


@pytest.mark.parametrize("damage", DAMAGES)
def test_damage_is_reported_and_made_good(store, caplog, damage):
    store.write(BASE, batches())
    damaged = damage(store.root / BASE.key)
    assert store.open(BASE.key) is None
    assert len(caplog.records) == 1
    assert str(damaged) in caplog.text
    assert visible(store.root) == []
    store.write(BASE, batches())
    assert store.open(BASE.key).arrays["logits"].shape == (15, 4)
    assert leftovers(store.root) == []


def test_files_swapped_between_entries_are_noticed(store, caplog):
    other = ingredients("v" * 64)
    store.write(BASE, batches())
    store.write(other, batches(seed=1))
    mine, theirs = (store.root / key / "logits.npy" for key in (BASE.key, other.key))
    mine.rename(store.root / "aside")
    theirs.rename(mine)
    (store.root / "aside").rename(theirs)
    assert store.open(BASE.key) is None
    assert store.open(other.key) is None
    assert str(mine) in caplog.text
    assert str(theirs) in caplog.text


def test_an_entry_under_the_name_of_another_is_noticed(store):
    other = ingredients("v" * 64)
    store.write(BASE, batches())
    (store.root / BASE.key).rename(store.root / other.key)
    assert store.open(other.key) is None


def test_a_failure_in_the_data_leaves_nothing(store):
    def failing():
        yield from batches(2)
        raise RuntimeError("the data ended badly")

    with pytest.raises(RuntimeError, match="ended badly"):
        store.write(BASE, failing())
    assert store.open(BASE.key) is None
    assert visible(store.root) == []
    assert leftovers(store.root) == []


def test_a_file_missing_from_the_data_is_not_blamed_on_the_store(store):
    def failing():
        yield from batches(1)
        raise FileNotFoundError("image_7.png")

    with pytest.raises(FileNotFoundError, match="image_7"):
        store.write(BASE, failing())


KILLED = """
import os, signal, sys, torch
from dpn_plugin.outputs import Ingredients, OutputStore
def batches():
    yield {"logits": torch.zeros(1000, 100)}
    os.kill(os.getpid(), signal.SIGKILL)
OutputStore(sys.argv[1]).write(Ingredients("w", "d", None, "test"), batches())
"""


def test_a_killed_writer_leaves_nothing_to_read_and_is_tidied_up(store):
    run = subprocess.run([sys.executable, "-c", KILLED, str(store.root)], check=False)
    assert run.returncode == -9
    assert visible(store.root) == []
    assert len(leftovers(store.root)) == 1
    store.write(BASE, batches())
    assert leftovers(store.root) == []


def test_two_writers_at_once_leave_one_whole_entry(store):
    together = threading.Barrier(2, timeout=30)

    def slow():
        together.wait()
        yield from batches()
        together.wait()

    results = []
    threads = [
        threading.Thread(target=lambda: results.append(store.write(BASE, slow()))) for _ in range(2)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    expected = torch.cat([batch["logits"] for batch in batches()])
    for stored in results:
        np.testing.assert_array_equal(stored.arrays["logits"], expected)
    assert len(results) == 2
    assert visible(store.root) == [BASE.key]
    assert leftovers(store.root) == []


def test_a_second_writer_does_not_tidy_up_a_living_one(store):
    def interrupted():
        yield from batches(1)
        store.write(ingredients("v" * 64), batches())
        yield from batches(1)

    assert store.write(BASE, interrupted()).arrays["logits"].shape == (10, 4)


@pytest.mark.parametrize(
    "key", ["../../etc", "", "A" * 64, "a" * 63, "a" * 64 + "/..", "a" * 64 + "\n"]
)
def test_only_hexadecimal_keys_become_paths(store, key):
    with pytest.raises(UserError, match="64 hexadecimal digits"):
        store.open(key)


@pytest.mark.parametrize("name", ["../logits", "a/b", "", "Logits", ".hidden", "entry.json"])
def test_names_of_arrays_are_plain_words(store, name):
    with pytest.raises(UserError, match="cannot name an array"):
        store.write(BASE, [{name: torch.zeros(2, 3)}])
    assert visible(store.root) == []


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ([], "no samples"),
        ([{"logits": torch.zeros(0, 3)}], "no samples"),
        ([{"logits": torch.zeros(2, 0)}], "hold nothing"),
        ([{"logits": torch.zeros(2, 3)}, {"logits": torch.zeros(2, 4)}], "logits: rows of"),
        (
            [{"logits": torch.zeros(2, 3)}, {"logits": torch.zeros(2, 3).double()}],
            "logits: rows of",
        ),
        ([{"logits": torch.zeros(2, 3)}, {"labels": torch.zeros(2)}], "follows batches with"),
        ([{"logits": torch.zeros(2, 3), "labels": torch.zeros(3)}], "same number of rows"),
    ],
)
def test_batches_that_do_not_fit_are_refused(store, given, message):
    with pytest.raises(UserError, match=message):
        store.write(BASE, given)
    assert visible(store.root) == []


def test_a_root_that_is_a_file_is_named(tmp_path):
    (tmp_path / "file").write_text("")
    with pytest.raises(UserError, match=r"Cannot use stored outputs in .*file"):
        OutputStore(tmp_path / "file").write(BASE, batches())


def test_a_disk_that_takes_no_more_is_named_and_leaves_nothing(store):
    limits = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (100_000, limits[1]))
    try:
        with pytest.raises(UserError, match=r"outputs in .*/outputs: File too large"):
            store.write(BASE, batches(1000, rows=100))
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, limits)
    assert visible(store.root) == []
    assert leftovers(store.root) == []
