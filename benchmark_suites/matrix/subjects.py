"""Small data and small trained models, sufficient to distinguish working from broken detectors."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
import timm
import torch
from sklearn.datasets import load_digits
from torch import Tensor
from torch.nn import functional as F

from dpn_plugin.backbones import Backbone, create_backbone

__all__ = ["BACKBONES", "Outputs", "Subject", "subject"]

CLASSES = 10
DIGIT = (8, 8)
#: approximate mean and standard deviation of the digits
MEAN, STD = 0.3, 0.35
#: low, for fast training, but enough for detectors that draw dropout masks
DROP_RATE = 0.1

Outputs = dict[str, np.ndarray]


@dataclass(frozen=True)
class Column:
    """
    A backbone of the table.

    :param build: creates the backbone for images with the given number of pixels along a side
    :param epochs: the number of epochs after which most digits are classified correctly
    """

    build: Callable[[int], Backbone]
    epochs: int


def _timm(name: str, epochs: int) -> Column:
    def build(pixels: int) -> Backbone:
        return create_backbone(name, CLASSES, in_chans=1, image_size=pixels, drop_rate=DROP_RATE)

    return Column(build, epochs)


def _narrow_swin(pixels: int) -> Backbone:
    # timm has no Swin for small images; this is timm's class with fewer channels
    model = timm.create_model(
        "swin_tiny_patch4_window7_224",
        num_classes=CLASSES,
        in_chans=1,
        drop_rate=DROP_RATE,
        img_size=pixels,
        patch_size=2,
        window_size=4,
        embed_dim=24,
        depths=(1, 1, 2, 1),
        num_heads=(1, 2, 4, 8),
    )
    return Backbone(model, "swin (narrow)", "default", (1, pixels, pixels))


BACKBONES = {
    "vgg16_cifar": _timm("vgg16_cifar", epochs=5),
    "test_resnet": _timm("test_resnet", epochs=6),
    "test_vit": _timm("test_vit", epochs=40),
    "test_efficientnet": _timm("test_efficientnet", epochs=10),
    "test_convnext": _timm("test_convnext", epochs=20),
    "mobilenetv3_small_050": _timm("mobilenetv3_small_050", epochs=10),
    "swin (narrow)": Column(_narrow_swin, epochs=10),
}


@dataclass(frozen=True)
class Samples:
    """Inputs and labels; a label below 0 is OOD."""

    x: Tensor
    y: Tensor

    def batches(self, size: int) -> Callable[[], Iterator[tuple[Tensor, Tensor]]]:
        """Return a function that yields the samples in batches of ``size``."""
        return lambda: zip(self.x.split(size), self.y.split(size), strict=True)


class Subject:
    """
    A trained backbone, the data that detectors are fitted to and tested on, and its outputs.

    :param backbone: trained
    :param fit: training digits, and the same with their pixels shuffled as OOD samples
    :param test: other digits, and noise as OOD samples
    """

    def __init__(self, backbone: Backbone, fit: Samples, test: Samples) -> None:
        self.backbone = backbone
        self.fit = fit
        self.test = test
        self.fit_outputs = _outputs(backbone, fit)
        self.test_outputs = _outputs(backbone, test)

    @property
    def accuracy(self) -> float:
        """The accuracy on the test digits."""
        known = self.test_outputs["labels"] >= 0
        predicted = self.test_outputs["logits"].argmax(axis=1)
        return float((predicted == self.test_outputs["labels"])[known].mean())


def subject(name: str, pixels: int = 32, train: int = 600, test: int = 100) -> Subject:
    """
    Train a backbone on digits and return it with data and outputs.

    :param name: one of :data:`BACKBONES`
    :param pixels: along a side of an image
    :param train: number of training digits
    :param test: number of test digits, and of noise images
    """
    torch.manual_seed(0)
    digits, labels = _digits(pixels)
    known = Samples(digits[:train], labels[:train])
    held_out = Samples(digits[train : train + test], labels[train : train + test])
    column = BACKBONES[name]
    backbone = column.build(pixels)
    _train(backbone, known, column.epochs)
    shuffled = known.x.flatten(1)[:, torch.randperm(pixels**2)].view_as(known.x)
    noise = _resized_and_normalized(torch.rand(test, 1, *DIGIT), pixels)
    return Subject(backbone, _with_ood(known, shuffled), _with_ood(held_out, noise))


def _digits(pixels: int) -> tuple[Tensor, Tensor]:
    """Return images in a fixed random order, and their labels."""
    found: Any = load_digits()
    order = torch.randperm(len(found.images), generator=torch.Generator().manual_seed(0))
    images = torch.from_numpy(found.images).float()[order, None] / 16
    return _resized_and_normalized(images, pixels), torch.from_numpy(found.target)[order]


def _resized_and_normalized(images: Tensor, pixels: int) -> Tensor:
    return (F.interpolate(images, size=pixels, mode="bilinear") - MEAN) / STD


def _with_ood(samples: Samples, ood: Tensor) -> Samples:
    labels = torch.full((len(ood),), -1)
    return Samples(torch.cat([samples.x, ood]), torch.cat([samples.y, labels]))


def _train(backbone: Backbone, samples: Samples, epochs: int, batch_size: int = 25) -> None:
    steps = epochs * len(samples.x) // batch_size
    optimizer = torch.optim.AdamW(backbone.parameters(), weight_decay=0.01)
    schedule = torch.optim.lr_scheduler.OneCycleLR(optimizer, max_lr=2e-3, total_steps=steps)
    backbone.train()
    for _ in range(epochs):
        for batch in torch.randperm(len(samples.x)).split(batch_size):
            optimizer.zero_grad()
            F.cross_entropy(backbone(samples.x[batch]), samples.y[batch]).backward()
            optimizer.step()
            schedule.step()
    optimizer.zero_grad()
    backbone.eval()


def _outputs(backbone: Backbone, samples: Samples) -> Outputs:
    with torch.no_grad():
        found = [backbone.outputs(x) for x in samples.x.split(100)]
    return {
        "logits": torch.cat([each.logits for each in found]).numpy(),
        "features": torch.cat([each.features for each in found]).numpy(),
        "labels": samples.y.numpy(),
    }
