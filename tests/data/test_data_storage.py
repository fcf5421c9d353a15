"""Images are kept in memory, in a cache or in their files, with the same content everywhere."""

import os
import time

import numpy as np
import pytest
import torch
from PIL import Image

from dpn_plugin.data import (
    DatasetCache,
    MappedImages,
    SourceSpec,
    StorageOptions,
    StreamedImages,
    fingerprint,
    load,
    storage,
)
from dpn_plugin.errors import CannotWrite, UserError

COUNT = 24
SIZE = (16, 16)


@pytest.fixture(autouse=True)
def nothing_is_small(monkeypatch):
    monkeypatch.setattr(storage, "SMALL", 0)
    monkeypatch.setattr("dpn_plugin.data.sources.from_npz.SMALL", 0)


@pytest.fixture
def photos(tmp_path):
    generator = np.random.default_rng(0)
    for number in range(COUNT):
        folder = tmp_path / "photos" / ("cat" if number % 2 else "dog")
        folder.mkdir(parents=True, exist_ok=True)
        pixels = generator.integers(0, 256, (18 + number, 20, 3), dtype=np.uint8)
        Image.fromarray(pixels).save(folder / f"{number:02}.jpg")
    age(tmp_path / "photos")
    return tmp_path


def age(folder):
    """Let files be older than those that are too new to be sure of."""
    for path in folder.rglob("*.*"):
        os.utime(path, (time.time() - 60,) * 2)


def options(root, kind, workers=0):
    if kind == "memory":
        return StorageOptions(workers=workers)
    memory = 0 if kind == "streamed" else None
    return StorageOptions(root / "cache", memory, workers)


def photographs(root, kind, workers=0, text="folder:photos"):
    return load(
        text,
        root=root,
        image_size=SIZE,
        channels=3,
        in_domain=True,
        storage=options(root, kind, workers),
    )


def read_count(monkeypatch):
    """Return a list that grows with every image that this process decodes."""
    read, done = Image.open, []
    monkeypatch.setattr(Image, "open", lambda *args, **kw: done.append(args) or read(*args, **kw))
    return done


@pytest.mark.parametrize("workers", [0, 2])
def test_streamed_cached_and_in_memory_are_the_same_data(photos, workers):
    memory, cached, streamed = (
        photographs(photos, kind, workers) for kind in ("memory", "cached", "streamed")
    )
    assert isinstance(memory.inputs, torch.Tensor)
    assert isinstance(cached.inputs, MappedImages)
    assert isinstance(streamed.inputs, StreamedImages)
    assert streamed.inputs.workers == workers
    for other in (cached, streamed):
        assert torch.equal(other.all_rows(), memory.inputs)
        assert torch.equal(other.labels, memory.labels)
        assert other.classes == memory.classes
        assert fingerprint(other) == fingerprint(memory)
        part = torch.tensor([5, 3, 11])
        assert fingerprint(other.subset(part)) == fingerprint(memory.subset(part))


@pytest.mark.parametrize("kind", ["cached", "streamed"])
def test_a_second_start_reads_no_image(photos, monkeypatch, kind):
    first = photographs(photos, kind)
    done = read_count(monkeypatch)
    assert fingerprint(photographs(photos, kind)) == fingerprint(first)
    assert not done


def test_only_a_file_that_changed_is_hashed_again(photos, monkeypatch):
    before = photographs(photos, "streamed")
    changed = photos / "photos" / "cat" / "05.jpg"
    Image.new("RGB", (20, 20), "red").save(changed)
    done = read_count(monkeypatch)
    after = photographs(photos, "streamed")
    assert [args[0] for args in done] == [str(changed)]
    assert fingerprint(after) != fingerprint(before)
    assert fingerprint(after) == fingerprint(photographs(photos, "memory"))


def test_the_cache_follows_a_file_that_changed(photos):
    photographs(photos, "cached")
    Image.new("RGB", (20, 20), "red").save(photos / "photos" / "cat" / "05.jpg")
    after = photographs(photos, "cached")
    assert torch.equal(after.all_rows(), photographs(photos, "memory").inputs)


def test_a_file_as_new_as_now_is_not_trusted_the_next_time(photos, monkeypatch):
    new = photos / "photos" / "cat" / "05.jpg"
    os.utime(new, (time.time() + 5,) * 2)
    photographs(photos, "streamed")
    done = read_count(monkeypatch)
    photographs(photos, "streamed")
    assert [args[0] for args in done] == [str(new)]


@pytest.mark.parametrize("damage", ["flipped", "short", "gone"])
@pytest.mark.parametrize("name", ["*.u8", "index"])
def test_a_damaged_cache_is_written_again(photos, damage, name):
    expected = photographs(photos, "cached").all_rows()
    (path,) = (photos / "cache").glob(name)
    content = bytearray(path.read_bytes())
    content[-1] ^= 1
    path.write_bytes(content[:-5] if damage == "short" else content)
    if damage == "gone":
        path.unlink()
    again = photographs(photos, "cached")
    assert torch.equal(again.all_rows(), expected)
    assert sorted(each.suffix for each in (photos / "cache").iterdir()) == ["", ".u8"]


def test_sets_are_cached_as_long_as_there_is_room(photos):
    room = COUNT * 3 * 16 * 16
    cache = DatasetCache(photos, storage=StorageOptions(photos / "cache", room, workers=0))
    first = cache.load(SourceSpec(source="folder:photos"), image_size=SIZE, channels=3)
    second = cache.load(SourceSpec(source="folder:photos"), image_size=(8, 8), channels=3)
    assert isinstance(first.inputs, MappedImages)
    assert isinstance(second.inputs, StreamedImages)


def test_large_arrays_go_into_the_cache_once(photos):
    images = np.random.default_rng(1).integers(0, 256, (9, 16, 16, 3), dtype=np.uint8)
    np.savez_compressed(photos / "packed.npz", images=images)
    spec = SourceSpec(source="npz:packed.npz")
    for _ in range(2):
        cache = DatasetCache(photos, storage=StorageOptions(photos / "cache"))
        found = cache.load(spec)
        assert isinstance(found.inputs, MappedImages)
        assert np.array_equal(found.all_rows(), images.transpose(0, 3, 1, 2))
        assert [each.suffix for each in (photos / "cache").iterdir()] == [".u8"]
    shared = DatasetCache(photos / "elsewhere", shared=cache.shared)
    assert shared.load(spec) is found


@pytest.mark.parametrize("shape", [(9, 16, 12), (9, 16, 12, 1), (9, 16, 12, 3)])
@pytest.mark.parametrize("size", [None, (8, 8)])
def test_uncompressed_npz_is_mapped(tmp_path, monkeypatch, shape, size):
    images = np.random.default_rng(1).integers(0, 256, shape, dtype=np.uint8)
    labels = np.arange(9)
    np.savez(tmp_path / "plain.npz", labels=labels, images=images)
    arguments = {"root": tmp_path, "image_size": size, "in_domain": True}
    found = load("npz:plain.npz?classes=2-6", **arguments, storage=StorageOptions(memory=0))
    assert isinstance(found.inputs, MappedImages if size is None else StreamedImages)
    monkeypatch.setattr("dpn_plugin.data.sources.from_npz.SMALL", 1 << 24)
    memory = load("npz:plain.npz?classes=2-6", **arguments)
    assert isinstance(memory.inputs, torch.Tensor)
    assert fingerprint(found) == fingerprint(memory)
    assert torch.equal(found.all_rows(), memory.inputs)


def test_a_mapped_npz_that_changes_in_the_middle_is_named(tmp_path):
    np.savez(tmp_path / "plain.npz", images=np.zeros((9, 16, 12), np.uint8))
    found = load("npz:plain.npz", root=tmp_path)
    with (tmp_path / "plain.npz").open("r+b") as file:
        file.truncate(100)
    with pytest.raises(UserError, match=r"plain.npz was changed while it was in use"):
        found.all_rows()


@pytest.mark.parametrize("change", ["changed", "removed"])
def test_a_file_that_changes_in_the_middle_is_named(photos, change):
    found = photographs(photos, "streamed")
    path = photos / "photos" / "cat" / "05.jpg"
    if change == "changed":
        Image.new("RGB", (20, 20), "red").save(path)
    else:
        path.unlink()
    message = r"05.jpg was changed while" if change == "changed" else r"05.jpg is not a readable"
    with pytest.raises(UserError, match=message):
        found.all_rows()


@pytest.mark.parametrize("kind", ["memory", "cached", "streamed"])
@pytest.mark.parametrize("workers", [0, 2])
def test_a_truncated_file_is_named_or_left_out(photos, kind, workers, monkeypatch):
    monkeypatch.setattr(storage, "_CHUNK_BYTES", 4000)
    whole = photographs(photos, "memory")
    bad = [photos / "photos" / "cat" / "05.jpg", photos / "photos" / "dog" / "00.jpg"]
    bad[0].write_bytes(bad[0].read_bytes()[:300])
    bad[1].unlink()
    bad[1].write_bytes(b"")
    age(photos)
    with pytest.raises(UserError, match=r"/05.jpg is not a readable image"):
        photographs(photos, kind, workers)
    for _ in range(2):  # the second time from the index
        left = photographs(photos, kind, workers, "folder:photos?skip_damaged=true")
        assert left.damaged == 2
        kept = [position for position in range(COUNT) if position not in (2, 12)]
        assert torch.equal(left.all_rows(), whole.inputs[kept])
        assert torch.equal(left.labels, whole.labels[kept])
    with pytest.raises(UserError, match=r"/05.jpg is not a readable image"):
        photographs(photos, kind, workers)


def test_sets_without_a_readable_image_are_refused(tmp_path):
    (tmp_path / "photos").mkdir()
    (tmp_path / "photos" / "a.jpg").write_bytes(b"no image")
    with pytest.raises(UserError, match="no image that can be read"):
        load("folder:photos?skip_damaged=true", root=tmp_path, image_size=SIZE, channels=3)


def test_a_cache_that_cannot_be_written_leaves_nothing_behind(photos):
    (photos / "cache").write_text("a file where the folder should be")
    with pytest.raises(CannotWrite, match="cache"):
        photographs(photos, "cached")
    (photos / "cache").unlink()
    assert torch.equal(
        photographs(photos, "cached").all_rows(), photographs(photos, "memory").inputs
    )
