"""Streamed, cached or in memory, with any number of loaders, killed or not: the same benchmark."""

import os
import shutil
import signal
import time
from pathlib import Path

import pytest
import torch
from child_processes import kill_self_in, run_in_child
from PIL import Image
from tiny_bench import bench, file_hashes, record, suite_file

from dpn_plugin.bench import PoolExecutor
from dpn_plugin.data import load, storage
from dpn_plugin.errors import UserError

PHOTOS = """
title = "Photographs"
input_size = [3, 16, 16]
methods = ["dpn-minus"]
detectors = ["dpn-mi", "knn"]
seeds = 1
[in_domain]
source = "folder:photos"
[outliers.first]
source = "folder:first"
[outliers.second]
source = "folder:second"
[far.other]
source = "folder:other"
skip_damaged = true
[train]
backbone = "test_resnet"
recipe = "small"
stem = "small"
epochs = 2
batch_size = 16
outlier_batch_size = 8
"""


def write_photos(folder: Path, name: str, count: int, seed: int, noise: float = 0.0) -> None:
    source = f"sklearn:photograph/{name}?patches={count}&size=20&seed={seed}&noise={noise}"
    folder.mkdir(parents=True)
    for number, pixels in enumerate(load(source, root=folder).all_rows()):
        image = Image.fromarray(pixels.permute(1, 2, 0).numpy())
        image.save(folder / f"{number}.jpg", quality=95)


@pytest.fixture(scope="module")
def photos(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("photos")
    for seed, name in enumerate(("china", "flower")):
        write_photos(folder / "photos" / name, name, 50, seed)
    for seed, name in enumerate(("first", "second", "other")):
        write_photos(folder / name, "china", 20, 10 + seed, noise=0.2)
    (folder / "other" / "7.jpg").write_bytes((folder / "other" / "7.jpg").read_bytes()[:200])
    for path in folder.rglob("*.jpg"):
        os.utime(path, (time.time() - 60,) * 2)
    suite_file(folder, PHOTOS)
    return folder


@pytest.fixture(scope="module")
def in_memory(photos: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    out = tmp_path_factory.mktemp("in_memory")
    on_one_thread(photos, out)
    assert not (out / "cache").exists()
    return out


def on_one_thread(photos: Path, out: Path, **request: object) -> None:
    torch.set_num_threads(1)
    bench(photos / "mine.toml", out, **request)


def streamed(photos: Path, out: Path, loaders: int, call: int | None = None) -> None:
    storage.SMALL = 0
    if call is not None:
        kill_self_in("dpn_plugin.training.trainer.set_rate", call)
    on_one_thread(photos, out, loaders=loaders, cache_memory=0)


@pytest.fixture
def nothing_is_small(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(storage, "SMALL", 0)


@pytest.mark.usefixtures("nothing_is_small")
@pytest.mark.parametrize("loaders", [0, 2, 4])
def test_streamed_is_the_same_as_in_memory(photos, in_memory, tmp_path, loaders):
    on_one_thread(photos, tmp_path, loaders=loaders, cache_memory=0)
    assert file_hashes(tmp_path) == file_hashes(in_memory)
    assert [path.name for path in (tmp_path / "cache").iterdir()] == ["index"]


@pytest.mark.usefixtures("nothing_is_small")
def test_cached_is_the_same_as_in_memory(photos, in_memory, tmp_path):
    on_one_thread(photos, tmp_path, loaders=2)
    assert file_hashes(tmp_path) == file_hashes(in_memory)
    assert len([*(tmp_path / "cache").glob("*.u8")]) == 4


def test_killed_and_continued_is_the_same_as_in_memory(photos, in_memory, tmp_path):
    assert run_in_child(streamed, photos, tmp_path, 2, 8) == -signal.SIGKILL
    assert run_in_child(streamed, photos, tmp_path, 0) == 0
    assert file_hashes(tmp_path) == file_hashes(in_memory)


@pytest.mark.usefixtures("nothing_is_small")
def test_processes_of_a_pool_get_the_cached_sets(photos, in_memory, tmp_path):
    class WithoutTheFiles(PoolExecutor):
        def execute(self, benchmark, monitor):
            shutil.rmtree(tmp_path / "data")
            return super().execute(benchmark, monitor)

    shutil.copytree(photos, tmp_path / "data")
    bench(tmp_path / "data" / "mine.toml", tmp_path / "out", executor=WithoutTheFiles(2), seeds=2)
    expected, found = file_hashes(in_memory), file_hashes(tmp_path / "out")
    weights = [name for name in expected if "seed-0" in name and name.endswith(".safetensors")]
    assert weights
    assert all(found[name] == expected[name] for name in weights)


def test_damaged_files_are_counted_in_the_record_and_reported(in_memory):
    found = record(in_memory)
    assert (found["sets"]["far"]["other"]["samples"], found["sets"]["far"]["other"]["damaged"]) == (
        19,
        1,
    )
    assert found["in_domain"]["damaged"] == 0
    assert any("1 of the 20 files of folder:other cannot be read" in w for w in found["warnings"])


def test_a_damaged_file_stops_the_benchmark_and_is_named(photos, tmp_path):
    suite = suite_file(tmp_path, PHOTOS, {"skip_damaged = true\n": ""})
    for name in ("photos", "first", "second", "other"):
        (tmp_path / name).symlink_to(photos / name)
    with pytest.raises(UserError, match=r"other/7.jpg is not a readable image"):
        bench(suite, tmp_path / "out")
