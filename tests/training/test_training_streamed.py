"""``dpn train`` on images that do not fit into memory ends with the weights of those that do."""

import numpy as np
import pytest
from PIL import Image

from dpn_plugin.data import SourceSpec, StorageOptions, storage
from dpn_plugin.runs import Recipe, TrainConfig
from dpn_plugin.training import train


@pytest.fixture
def photos(tmp_path):
    pixels = np.random.default_rng(0).integers(0, 256, (40, 10, 12, 3), dtype=np.uint8)
    for number, each in enumerate(pixels):
        folder = tmp_path / "photos" / ("cat" if number % 2 else "dog")
        folder.mkdir(parents=True, exist_ok=True)
        Image.fromarray(each).save(folder / f"{number}.png")
    return tmp_path


def trained(photos, name, options=None):
    recipe = Recipe.named("small", epochs=2, batch_size=8, image_size=8)
    config = TrainConfig(
        backbone="test_resnet",
        method="baseline",
        in_domain=SourceSpec(source="folder:photos"),
        recipe=recipe,
        stem="small",
    )
    return train(config, photos / name, root=photos, device="cpu", storage=options)


@pytest.mark.parametrize("options", [StorageOptions(memory=0, workers=2), StorageOptions()])
def test_weights_do_not_depend_on_where_images_are_kept(photos, monkeypatch, options):
    expected = trained(photos, "memory")
    monkeypatch.setattr(storage, "SMALL", 0)
    # of a training that was killed before it wrote its record
    (photos / "run" / "cache").mkdir(parents=True)
    found = trained(photos, "run", options)
    assert found.record.data == expected.record.data
    assert found.weights_hash == expected.weights_hash
    assert not (photos / "run" / "cache").exists()
