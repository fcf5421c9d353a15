"""``hf:`` reads what Hugging Face's ``datasets`` wrote to a disk, and nothing else."""

import numpy as np
import pytest
import torch

from dpn_plugin.data import StorageOptions, StreamedImages, fingerprint, load, storage
from dpn_plugin.errors import MissingData, UserError

datasets = pytest.importorskip("datasets")

PIXELS = np.random.default_rng(0).integers(0, 256, (12, 8, 8, 3), dtype=np.uint8)
NAMES = ["cat", "dog", "fox"]


@pytest.fixture(autouse=True)
def own_cache(tmp_path, monkeypatch):
    monkeypatch.setattr(datasets.config, "HF_DATASETS_CACHE", str(tmp_path / "hf-cache"))


@pytest.fixture
def table():
    columns = {"photo": list(PIXELS), "kind": [k % 3 for k in range(12)], "weight": [1.5] * 12}
    features = {
        "photo": datasets.Image(),
        "kind": datasets.ClassLabel(names=NAMES),
        "weight": datasets.Value("float32"),
    }
    return datasets.Dataset.from_dict(columns, features=datasets.Features(features))


def saved(table, path, kind):
    if kind == "folder":
        table.save_to_disk(str(path / "set"))
        return "hf:set"
    if kind == "splits":
        splits = {"train": table, "test": table.select(range(4))}
        datasets.DatasetDict(splits).save_to_disk(str(path / "set"))
        return "hf:set?split=train"
    (path / "set" / "data").mkdir(parents=True)
    table.to_parquet(str(path / "set" / "data" / "train-00000-of-00001.parquet"))
    table.select(range(3)).to_parquet(str(path / "set" / "data" / "test-00000-of-00001.parquet"))
    return "hf:set?split=train"


@pytest.mark.parametrize("kind", ["folder", "splits", "parquet"])
def test_images_labels_and_names_are_those_of_the_data_set(table, tmp_path, kind):
    found = load(saved(table, tmp_path, kind), root=tmp_path, in_domain=True)
    assert np.array_equal(found.all_rows(), PIXELS.transpose(0, 3, 1, 2))
    assert found.labels.tolist() == [k % 3 for k in range(12)]
    assert found.classes == tuple(NAMES)


def test_streamed_images_are_known_again_from_the_index(table, tmp_path, monkeypatch):
    text = saved(table, tmp_path, "folder") + "?classes=dog,fox"
    memory = load(text, root=tmp_path, in_domain=True)
    monkeypatch.setattr(storage, "SMALL", 0)
    options = StorageOptions(tmp_path / "cache", memory=0, workers=2)
    first = load(text, root=tmp_path, in_domain=True, storage=options)
    assert isinstance(first.inputs, StreamedImages)
    assert torch.equal(first.all_rows(), memory.inputs)

    def refuse(self, position):
        raise AssertionError("an image was read")

    monkeypatch.setattr("dpn_plugin.data.lazy_images.ImageDecoder.decode", refuse)
    arguments = {"root": tmp_path, "in_domain": True, "storage": options}
    again = load(text, **arguments, image_size=(8, 8), channels=3)
    assert fingerprint(again) == fingerprint(memory)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("hf:set", r"several splits: give split, 'train' or 'test'|'train'.*'test'"),
        ("hf:set?split=tset", r"tset.*test"),
        ("hf:set?split=train&image=foto", r"foto.*photo"),
        ("hf:set?split=train&label=kinds", r"kinds.*kind"),
        ("hf:set?split=train&label=weight", r"'weight' must hold whole numbers"),
    ],
)
def test_wrong_names_are_refused(table, tmp_path, text, message):
    saved(table, tmp_path, "splits")
    with pytest.raises(UserError, match=message):
        load(text, root=tmp_path, in_domain=True)


def test_a_damaged_image_is_named_or_left_out(table, tmp_path):
    rows = [
        {"bytes": b"no image", "path": None} if k == 5 else {"bytes": b, "path": None}
        for k, b in enumerate(
            e["bytes"] for e in table.cast_column("photo", datasets.Image(decode=False))["photo"]
        )
    ]
    features = datasets.Features({"photo": datasets.Image()})
    datasets.Dataset.from_dict({"photo": rows}, features=features).save_to_disk(
        str(tmp_path / "set")
    )
    with pytest.raises(UserError, match=r"hf:set: image 5 is not a readable image"):
        load("hf:set", root=tmp_path)
    with pytest.warns(UserWarning, match="1 of the 12 files"):
        assert load("hf:set?skip_damaged=true", root=tmp_path).damaged == 1


def test_what_is_not_there_is_not_downloaded(tmp_path):
    with pytest.raises(MissingData, match="was not found"):
        load("hf:ylecun/mnist", root=tmp_path)
    (tmp_path / "empty").mkdir()
    with pytest.raises(UserError, match="cannot be read"):
        load("hf:empty", root=tmp_path)
