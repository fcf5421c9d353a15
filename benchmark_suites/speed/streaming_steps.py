"""What the measurements of streaming have in common: files, and the steps that are timed."""

import os
import tempfile
import time
from pathlib import Path

import numpy as np
import torch
from PIL import Image
from torch import nn

from dpn_plugin._distributed import Processes
from dpn_plugin.backbones import Backbone
from dpn_plugin.data import DatasetCache, Samples, SourceSpec, StorageOptions, Transform
from dpn_plugin.runs import NO_VIEW, Checkpoints, FrozenBase, Recipe
from dpn_plugin.training import TrainingData
from dpn_plugin.training.trainer import Trainer

CLASSES = 4
BATCH = 64
#: of a feature pass, as in a benchmark
FEATURE_BATCH = 256
#: height and width of the files, and of the images that networks see
FILE_SIZE, SIZE = 96, 64


def write_photos(folder: Path, files: int, images: int, size: int) -> None:
    """Write JPEG files, one folder for each class; further images are links to the first files."""
    generator = np.random.default_rng(0)
    smooth = generator.integers(0, 256, (files, 6, 6, 3), dtype=np.uint8)
    for number in range(images):
        path = folder / f"class{number % CLASSES}" / f"{number:06}.jpg"
        path.parent.mkdir(parents=True, exist_ok=True)
        if number < files:
            picture = Image.fromarray(smooth[number]).resize((size, size))
            picture.save(path, quality=90)
        else:
            first = number % files // CLASSES * CLASSES + number % CLASSES
            os.link(folder / f"class{first % CLASSES}" / f"{first:06}.jpg", path)
    for path in folder.rglob("*.jpg"):
        os.utime(path, (time.time() - 60,) * 2)  # files as new as now are hashed at every start


def load_photos(folder: Path, storage: StorageOptions, size: int = SIZE) -> Samples:
    """Return the files as in-domain samples."""
    datasets = DatasetCache(folder.parent, storage=storage)
    spec = SourceSpec(source=f"folder:{folder.name}")
    return datasets.load(spec, image_size=(size, size), channels=3, in_domain=True)


def our_features(samples: Samples, base: FrozenBase) -> int:
    """Run a network over streamed samples and return the number of images."""
    images = NO_VIEW.batches(samples, FEATURE_BATCH)
    return sum(len(each) for each in base.features(images, torch.device("cpu")))


def our_training(samples: Samples, backbone: Backbone, transform: Transform) -> None:
    """Train for one epoch with the steps of ``dpn train``."""
    none = {"shift": 0.0, "rotation": 0.0, "flip": False}
    recipe = Recipe.named("c10", lr=1e-3, batch_size=BATCH, augmentation=none)
    losses = (nn.CrossEntropyLoss(reduction="none"), nn.CrossEntropyLoss(reduction="none"))
    with tempfile.TemporaryDirectory() as folder:
        trainer = Trainer(
            backbone,
            losses,
            TrainingData(samples, samples),
            transform,
            recipe,
            Checkpoints(Path(folder), owner=""),
            Processes(torch.device("cpu")),
            seed=0,
        )
        trainer.task.train()
        for x, y in trainer.batches.rest_of(epoch=0, step=0):
            trainer._train_step(x, y, epoch=0)
