"""Small real files in the formats that the sources read."""

import struct
from pathlib import Path

import numpy as np
import pytest
import torch
from PIL import Image

from dpn_plugin.data import Samples


@pytest.fixture
def mnist_root(tmp_path: Path) -> Path:
    """MNIST's own file format: 30 training and 12 test images of ten and six classes."""
    raw = tmp_path / "MNIST" / "raw"
    raw.mkdir(parents=True)
    rng = np.random.default_rng(0)
    for part, count, classes in (("train", 30, 10), ("t10k", 12, 6)):
        images = rng.integers(0, 256, (count, 28, 28), dtype=np.uint8)
        labels = (np.arange(count) % classes).astype(np.uint8)
        header = struct.pack(">IIII", 0x803, *images.shape)
        (raw / f"{part}-images-idx3-ubyte").write_bytes(header + images.tobytes())
        header = struct.pack(">II", 0x801, count)
        (raw / f"{part}-labels-idx1-ubyte").write_bytes(header + labels.tobytes())
    return tmp_path


@pytest.fixture
def drawings(tmp_path: Path) -> Path:
    """An .npz file with 40 images of four named classes."""
    path = tmp_path / "drawings.npz"
    images = np.random.default_rng(1).integers(0, 256, (40, 10, 12), dtype=np.uint8)
    names = np.array(["ant", "bee", "cat", "dog"])
    np.savez_compressed(path, images=images, labels=np.arange(40) % 4, classes=names)
    return path


@pytest.fixture
def photos(tmp_path: Path) -> Path:
    """A folder with two classes of PNG files of different sizes."""
    rng = np.random.default_rng(2)
    for label, name in enumerate(("cats", "dogs")):
        (tmp_path / "photos" / name).mkdir(parents=True)
        for number in range(3):
            pixels = rng.integers(0, 256, (20 + number, 30 + label, 3), dtype=np.uint8)
            Image.fromarray(pixels).save(tmp_path / "photos" / name / f"{number}.png")
    return tmp_path / "photos"


@pytest.fixture
def images() -> Samples:
    """60 random RGB images of three classes, with 30, 20 and 10 members."""
    generator = torch.Generator().manual_seed(3)
    pixels = torch.randint(0, 256, (60, 3, 8, 8), generator=generator, dtype=torch.uint8)
    labels = torch.tensor([0] * 30 + [1] * 20 + [2] * 10)
    return Samples(pixels, labels, "random")
