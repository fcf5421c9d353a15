"""Memory does not grow with the number of images; one cache serves several processes."""

import multiprocessing
import os
import time
from pathlib import Path

import numpy as np
import pytest
import torch
from child_processes import FORKSERVER
from PIL import Image
from private_memory import PeakPrivate

from dpn_plugin.data import (
    Batches,
    StorageOptions,
    channel_statistics,
    fingerprint,
    inputs,
    load,
    storage,
)

FORKSERVER.set_forkserver_preload(["dpn_plugin.data", "dpn_plugin.plugins", "torchvision.datasets"])
SIZE = 128
#: bytes of a decoded image, and the memory by which two peaks may differ: what a new process starts
#: with varies by some 20 MiB
IMAGE, TOLERANCE = 3 * SIZE**2, 48 * 2**20


def write_photos(folder, count):
    folder.mkdir()
    pixels = np.random.default_rng(0).integers(0, 256, (100, 8, 8, 3), dtype=np.uint8)
    for number in range(count):
        path = folder / f"{number:05}.jpg"
        if number < 100:
            Image.fromarray(pixels[number]).save(path)
        else:
            os.link(folder / f"{number % 100:05}.jpg", path)
    for number in range(min(count, 100)):
        os.utime(folder / f"{number:05}.jpg", (time.time() - 60,) * 2)


def photographs(folder, options):
    storage.SMALL = 0
    return load(
        f"folder:{folder.name}",
        root=folder.parent,
        image_size=(SIZE, SIZE),
        channels=3,
        storage=options,
    )


def read_all(folder, options, results):
    inputs._RELEASE_AFTER = 1 << 22  # the default is more than these images need
    torch.set_num_threads(1)
    memory = PeakPrivate()
    samples = photographs(folder, options)
    fingerprint(samples)
    channel_statistics(samples.subset(torch.arange(0, len(samples), 2)))
    for batches in (Batches(samples, 32, shuffle=each) for each in (True, False)):
        count = sum(len(labels) for _, labels in batches.epoch(0))
    results.put((count, memory.stop()))


def in_children(target, count, *arguments):
    """Return what children that start together put into a queue."""
    results = FORKSERVER.Queue()
    children = [FORKSERVER.Process(target=target, args=(*arguments, results)) for _ in range(count)]
    for child in children:
        child.start()
    found = [results.get(timeout=120) for _ in children]
    for child in children:
        child.join(60)
        assert child.exitcode == 0
    return found


@pytest.mark.skipif(not Path("/proc/self/status").exists(), reason="needs Linux")
@pytest.mark.parametrize(("kind", "workers"), [("streamed", 0), ("streamed", 2), ("cached", 0)])
def test_peak_memory_does_not_grow_with_the_data(tmp_path, kind, workers):
    peaks = []
    for count in (1500, 5000):
        write_photos(tmp_path / f"photos{count}", count)
        memory = 0 if kind == "streamed" else None
        options = StorageOptions(tmp_path / f"cache{count}", memory, workers)
        ((read, peak),) = in_children(read_all, 1, tmp_path / f"photos{count}", options)
        assert read == count
        peaks.append(peak)
    assert peaks[1] - peaks[0] < TOLERANCE < (5000 - 1500) * IMAGE / 3


def fill(folder, options, barrier, results):
    barrier.wait()
    results.put(fingerprint(photographs(folder, options)))


def test_two_processes_that_fill_one_cache_do_not_collide(tmp_path):
    write_photos(tmp_path / "photos", 300)
    manager = multiprocessing.get_context("forkserver").Manager()
    with manager:
        barrier = manager.Barrier(3)
        options = StorageOptions(tmp_path / "cache", workers=0)
        found = in_children(fill, 3, tmp_path / "photos", options, barrier)
    storage_before = storage.SMALL
    try:
        memory = photographs(tmp_path / "photos", StorageOptions())
    finally:
        storage.SMALL = storage_before
    assert set(found) == {fingerprint(memory)}
    files = sorted(path.suffix for path in (tmp_path / "cache").iterdir())
    assert files == ["", ".u8"]
