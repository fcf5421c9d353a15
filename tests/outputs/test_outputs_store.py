"""The store gives back what was written, and refuses what cannot be stored."""

import resource
from pathlib import Path

import numpy as np
import pytest
import torch
from sample_outputs import KEY, OTHER_KEY, batches, leftovers, visible

from dpn_plugin.errors import CannotWrite, UserError
from dpn_plugin.outputs import OutputKey, OutputStore


def test_outputs_are_read_as_they_were_written(store: OutputStore) -> None:
    store.write(KEY, batches())
    stored = store.open(KEY.hash)
    written = list(batches())
    assert stored.key == KEY
    assert stored.arrays.keys() == {"logits", "features", "labels"}
    for name, array in stored.arrays.items():
        whole = torch.cat([batch[name] for batch in written]).numpy()
        np.testing.assert_array_equal(array, whole)
        assert array.dtype == whole.dtype


def test_arrays_are_memory_mapped_and_read_only(store: OutputStore) -> None:
    logits = store.write(KEY, batches()).arrays["logits"]
    assert isinstance(logits, np.memmap)
    with pytest.raises(ValueError, match="read-only"):
        logits[0] = 0


def test_numpy_reads_the_files(store: OutputStore) -> None:
    store.write(KEY, batches())
    logits = np.load(store.root / KEY.hash / "logits.npy", allow_pickle=False)
    np.testing.assert_array_equal(logits, torch.cat([b["logits"] for b in batches()]))


def test_batches_may_differ_in_size(store: OutputStore) -> None:
    stored = store.write(KEY, [*batches(1, rows=5), *batches(1, rows=2)])
    assert stored.arrays["logits"].shape == (7, 4)


def test_bfloat16_is_stored_as_float32_without_loss(store: OutputStore) -> None:
    values = torch.randn(6, 3).bfloat16()
    stored = store.write(KEY, [{"logits": values}])
    np.testing.assert_array_equal(stored.arrays["logits"], values.float().numpy())


def test_an_entry_that_exists_stays(store: OutputStore) -> None:
    store.write(KEY, batches())
    before = (store.root / KEY.hash / "entry.json").stat().st_mtime_ns
    stored = store.write(KEY, batches(seed=1))
    np.testing.assert_array_equal(
        stored.arrays["logits"], torch.cat([batch["logits"] for batch in batches()])
    )
    assert (store.root / KEY.hash / "entry.json").stat().st_mtime_ns == before
    assert leftovers(store.root) == []


def test_an_unknown_key_opens_nothing(store: OutputStore) -> None:
    assert store.open(KEY.hash) is None


@pytest.mark.parametrize(
    "other",
    [
        OTHER_KEY,
        OutputKey(KEY.weights, "e" * 64, KEY.transform, "test"),
        OutputKey(KEY.weights, KEY.data, {"size": [3, 64, 64]}, "test"),
        OutputKey(KEY.weights, KEY.data, KEY.transform, "train"),
        OutputKey(KEY.weights, KEY.data, KEY.transform, "test", {"passes": 10}),
    ],
)
def test_every_part_changes_the_key(store: OutputStore, other: OutputKey) -> None:
    store.write(KEY, batches())
    assert store.open(other.hash) is None


def test_the_key_does_not_depend_on_the_order_of_a_description() -> None:
    one = OutputKey("w", "d", {"a": 1, "b": 2}, "test")
    two = OutputKey("w", "d", {"b": 2, "a": 1}, "test")
    assert one.hash == two.hash


@pytest.mark.parametrize("part", [torch.zeros(3), float("nan"), {1, 2}])
def test_parts_of_a_key_that_are_not_json_are_refused(part: object) -> None:
    with pytest.raises(TypeError, match="must be JSON"):
        OutputKey("w", "d", {"mean": part}, "test")
    with pytest.raises(UserError, match="must be JSON"):
        OutputKey("w", "d", None, "test", {"mean": part})


@pytest.mark.parametrize(
    "key", ["../../etc", "", "A" * 64, "a" * 63, "a" * 64 + "/..", "a" * 64 + "\n"]
)
def test_only_hexadecimal_keys_become_paths(store: OutputStore, key: str) -> None:
    with pytest.raises(UserError, match="64 hexadecimal digits"):
        store.open(key)


@pytest.mark.parametrize("name", ["../logits", "a/b", "", "Logits", ".hidden", "entry.json"])
def test_names_of_arrays_are_restricted(store: OutputStore, name: str) -> None:
    with pytest.raises(UserError, match="cannot name an array"):
        store.write(KEY, [{name: torch.zeros(2, 3)}])
    assert visible(store.root) == []


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ([], "no samples"),
        ([{"logits": torch.zeros(0, 3)}], "no samples"),
        ([{"logits": torch.zeros(2, 0)}], r"logits: rows of shape \(0,\) are empty"),
        ([{"logits": torch.zeros(2, 3)}, {"logits": torch.zeros(2, 4)}], "logits: rows of"),
        (
            [{"logits": torch.zeros(2, 3)}, {"logits": torch.zeros(2, 3).double()}],
            "logits: rows of",
        ),
        ([{"logits": torch.zeros(2, 3)}, {"labels": torch.zeros(2)}], "follows batches with"),
        ([{"logits": torch.zeros(2, 3), "labels": torch.zeros(3)}], "same number of rows"),
    ],
)
def test_batches_that_do_not_fit_are_refused(store: OutputStore, given: list, message: str) -> None:
    with pytest.raises(UserError, match=message):
        store.write(KEY, given)
    assert visible(store.root) == []
    assert leftovers(store.root) == []


def test_a_root_that_is_a_file_is_reported(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(CannotWrite, match=r"Cannot write .*/file/\w{64}: (Not a dir|File exists)"):
        OutputStore(tmp_path / "file").write(KEY, batches())


def test_a_full_disk_is_reported_and_leaves_nothing(store: OutputStore) -> None:
    limits = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (100_000, limits[1]))
    try:
        with pytest.raises(CannotWrite, match=r"Cannot write .*/outputs/\w{64}: File too large"):
            store.write(KEY, batches(1000, rows=100))
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, limits)
    assert visible(store.root) == []
    assert leftovers(store.root) == []
