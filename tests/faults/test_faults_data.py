"""Image files, caches and loaders that fail in the middle of a benchmark."""

import os
import shutil
import signal
import time
from collections.abc import Callable
from pathlib import Path
from random import Random

import numpy as np
import pytest
from dpn_process import Dpn
from folders import check_same
from PIL import Image
from test_faults_damaged import DAMAGES
from tiny_bench import suite_file

PHOTOS = """
title = "Photographs"
input_size = [3, 16, 16]
methods = ["baseline"]
detectors = ["dpn-mi"]
seeds = 1
[in_domain]
source = "folder:photos"
[far.other]
source = "folder:other"
[train]
backbone = "test_resnet"
recipe = "small"
stem = "small"
epochs = 1
batch_size = 8
"""
STREAMED = ("--cache-memory", "0", "--loaders", "2")


def write_photos(folder: Path, count: int, seed: int) -> None:
    folder.mkdir(parents=True)
    pixels = np.random.default_rng(seed).integers(0, 256, (count, 18, 18, 3), dtype=np.uint8)
    for number, each in enumerate(pixels):
        Image.fromarray(each).save(folder / f"{number}.jpg")


@pytest.fixture(scope="module")
def photos(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A suite file with its images."""
    folder = tmp_path_factory.mktemp("photos")
    for seed, name in enumerate(("photos/cat", "photos/dog", "other")):
        write_photos(folder / name, 30, seed)
    for path in folder.rglob("*.jpg"):
        os.utime(path, (time.time() - 3600,) * 2)
    return suite_file(folder, PHOTOS)


@pytest.fixture(scope="module")
def cached(photos: Path) -> Dpn:
    """A benchmark with a cache, without any fault."""
    return finished(Dpn(photos, photos.parent / "cached", small=0))


@pytest.fixture(scope="module")
def streamed(photos: Path) -> Dpn:
    """A benchmark of streamed images, without any fault."""
    return finished(Dpn(photos, photos.parent / "streamed", STREAMED, small=0))


def finished(dpn: Dpn) -> Dpn:
    assert dpn.run() == 0, dpn.output
    return dpn


def last_message(dpn: Dpn) -> str:
    output = dpn.output.replace(str(dpn.suite.parent), "DATA")
    return output[-120:]


@pytest.mark.parametrize(("damage", "left"), [("truncated", 40), ("emptied", 0)])
def test_a_damaged_image(
    damage: str, left: int, photos: Path, cached: Dpn, tmp_path, record_property
) -> None:
    record_property("fault", f"image {damage}")
    record_property("where", "other/7.jpg")
    path, known = photos.parent / "other" / "7.jpg", tmp_path / "7.jpg"
    shutil.copy2(path, known)
    path.write_bytes(known.read_bytes()[:left])
    dpn = Dpn(photos, tmp_path / "out", small=0)
    code = dpn.run()
    shutil.copy2(known, path)
    record_property("observed", f"exit {code}: {last_message(dpn)}")
    assert code == 2
    assert "other/7.jpg is not a readable image" in dpn.output
    check_same(finished(Dpn(photos, dpn.out, small=0)).out, cached.out)


@pytest.mark.parametrize("damage", DAMAGES, ids=lambda each: each.__name__)
@pytest.mark.parametrize("name", ["*.u8", "index"])
def test_a_damaged_cache(
    name: str, damage: Callable[[Path, Random], None], cached: Dpn, tmp_path, record_property
) -> None:
    record_property("fault", f"file {damage.__name__}")
    record_property("where", f"cache/{name}")
    out = Path(shutil.copytree(cached.out, tmp_path / "out"))
    damage(min((out / "cache").glob(name)), Random(0))
    again = finished(Dpn(cached.suite, out, small=0))
    record_property("observed", f"again: {again.summary}")
    assert "training.step ." not in again.events
    check_same(out, cached.out)


@pytest.mark.parametrize("share", [0.1, 0.5, 0.9])
def test_killed_while_the_cache_is_filled(
    share: float, cached: Dpn, tmp_path, record_property
) -> None:
    filling = [i for i, event in enumerate(cached.events) if " cache" in event]
    at = filling[int(share * len(filling))]
    record_property("fault", "kill -9")
    record_property("where", f"while the cache is filled: {cached.events[at]}"[:80])
    dpn = Dpn(cached.suite, tmp_path / "out", small=0, at=at)
    assert dpn.run() == -signal.SIGKILL
    again = finished(Dpn(cached.suite, dpn.out, small=0))
    record_property("observed", f"again: {again.summary}")
    check_same(dpn.out, cached.out)


def test_a_disk_that_is_full_while_the_cache_is_written(
    cached: Dpn, tmp_path, record_property
) -> None:
    largest = max(path.stat().st_size for path in (cached.out / "cache").glob("*.u8")) // 2
    record_property("fault", "files cannot grow")
    record_property("where", f"beyond {largest} bytes, while the cache is written")
    dpn = Dpn(cached.suite, tmp_path / "out", small=0, largest=largest)
    code = dpn.run()
    record_property("observed", f"exit {code}: {last_message(dpn)}")
    assert code == 2
    assert "Cannot write" in dpn.output
    assert not [*dpn.out.rglob("*.u8")]
    check_same(finished(Dpn(cached.suite, dpn.out, small=0)).out, cached.out)


def stopped_in_training(streamed: Dpn, out: Path) -> Dpn:
    """Return a benchmark of streamed images that waits before its third step."""
    at = [i for i, event in enumerate(streamed.events) if event == "training.step ."][2]
    dpn = Dpn(streamed.suite, out, STREAMED, small=0, signal=signal.SIGSTOP, at=at).start()
    dpn.wait_for_event()
    return dpn


def test_a_killed_loader(streamed: Dpn, tmp_path, record_property) -> None:
    record_property("fault", "kill -9")
    record_property("where", "all loaders in the middle of training")
    dpn = stopped_in_training(streamed, tmp_path / "out")
    children = Path(f"/proc/{dpn.process.pid}/task/{dpn.process.pid}/children").read_text("ascii")
    assert children.split()
    for child in children.split():
        os.kill(int(child), signal.SIGKILL)
    os.kill(dpn.process.pid, signal.SIGCONT)
    code = dpn.finish()
    record_property("observed", f"exit {code}: {last_message(dpn)}")
    assert code == 2
    assert "decodes images of folder:photos was killed" in dpn.output
    assert "Traceback" not in dpn.output
    check_same(finished(Dpn(streamed.suite, dpn.out, STREAMED, small=0)).out, streamed.out)


@pytest.mark.parametrize("change", ["changed", "removed"])
def test_an_image_that_changes_in_the_middle(
    change: str, streamed: Dpn, tmp_path, record_property
) -> None:
    record_property("fault", f"image {change}")
    record_property("where", "in the middle of training")
    folder, known = streamed.suite.parent / "other", tmp_path / "known"
    dpn = stopped_in_training(streamed, tmp_path / "out")
    shutil.copytree(folder, known)
    for path in folder.iterdir():
        path.unlink() if change == "removed" else os.utime(path)
    os.kill(dpn.process.pid, signal.SIGCONT)
    code = dpn.finish()
    shutil.copytree(known, folder, dirs_exist_ok=True)
    record_property("observed", f"exit {code}: {last_message(dpn)}")
    assert code == 2
    assert "other/0.jpg" in dpn.output
    check_same(finished(Dpn(streamed.suite, dpn.out, STREAMED, small=0)).out, streamed.out)
