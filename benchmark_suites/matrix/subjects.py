"""Small data and small models that are good enough to tell a working detector from a broken one."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import timm
import torch
from sklearn.datasets import load_digits
from torch import Tensor
from torch.nn import functional as F

from dpn_plugin.backbones import Backbone, create_backbone

__all__ = ["BACKBONES", "Outputs", "Subject", "subject"]

PIXELS = 32
CLASSES = 10
#: how the samples of scikit-learn's digits are dealt out
TRAIN, TEST = 600, 200

Outputs = dict[str, np.ndarray]


def _narrow_swin() -> Backbone:
    # timm has no Swin for small images; this is its own class with fewer channels
    model = timm.create_model(
        "swin_tiny_patch4_window7_224",
        num_classes=CLASSES,
        in_chans=1,
        img_size=PIXELS,
        patch_size=2,
        window_size=4,
        embed_dim=24,
        depths=(1, 1, 2, 1),
        num_heads=(1, 2, 4, 8),
    )
    return Backbone(model, "swin (narrow)", "default", (1, PIXELS, PIXELS))


def _named(name: str) -> Callable[[], Backbone]:
    return lambda: create_backbone(name, CLASSES, in_chans=1, image_size=PIXELS)


#: how to build the columns of the table
BACKBONES: dict[str, Callable[[], Backbone]] = {
    **{
        name: _named(name)
        for name in (
            "vgg16_cifar",
            "test_resnet",
            "test_vit",
            "test_efficientnet",
            "test_convnext",
            "mobilenetv3_small_050",
        )
    },
    "swin (narrow)": _narrow_swin,
}


@dataclass(frozen=True)
class Samples:
    """Inputs and labels; a label below 0 is OOD."""

    x: Tensor
    y: Tensor

    def batches(self, size: int) -> Callable[[], Iterator[tuple[Tensor, Tensor]]]:
        """:return: a function that gives the samples in batches of ``size``"""
        return lambda: zip(self.x.split(size), self.y.split(size), strict=True)


class Subject:
    """
    A trained backbone, the data that detectors are fitted on and tested with, and what the backbone
    says about it.

    :param backbone: trained
    :param fit: training digits, and the same with their pixels shuffled as OOD samples
    :param test: other digits, and noise as OOD samples
    :param accuracy: on the digits of ``test``
    """

    def __init__(self, backbone: Backbone, fit: Samples, test: Samples) -> None:
        self.backbone = backbone
        self.fit = fit
        self.test = test

    @cached_property
    def fit_outputs(self) -> Outputs:
        """What the backbone says about ``fit``."""
        return _outputs(self.backbone, self.fit)

    @cached_property
    def test_outputs(self) -> Outputs:
        """What the backbone says about ``test``."""
        return _outputs(self.backbone, self.test)

    @property
    def accuracy(self) -> float:
        """Share of the test digits that the backbone knows."""
        known = self.test_outputs["labels"] >= 0
        predicted = self.test_outputs["logits"].argmax(axis=1)
        return float((predicted == self.test_outputs["labels"])[known].mean())


def subject(name: str, epochs: int = 8, test: int = TEST) -> Subject:
    """
    :param name: one of :data:`BACKBONES`
    :param epochs: how often the training digits are seen
    :param test: number of test digits, and of noise images
    """
    torch.manual_seed(0)
    digits, labels = _digits()
    train = Samples(digits[:TRAIN], labels[:TRAIN])
    backbone = BACKBONES[name]()
    _train(backbone, train, epochs)
    shuffled = train.x.flatten(1)[:, torch.randperm(PIXELS**2)].view_as(train.x)
    held_out = Samples(digits[TRAIN : TRAIN + test], labels[TRAIN : TRAIN + test])
    noise = (torch.rand_like(held_out.x) - 0.5) / 0.3
    return Subject(backbone, _with_ood(train, shuffled), _with_ood(held_out, noise))


def _digits() -> tuple[Tensor, Tensor]:
    """Images in a fixed random order, enlarged, with a mean near 0 and a deviation near 1."""
    found: Any = load_digits()
    order = torch.randperm(len(found.images), generator=torch.Generator().manual_seed(0))
    images = torch.from_numpy(found.images).float()[order, None] / 16
    enlarged = F.interpolate(images, size=PIXELS, mode="bilinear")
    return (enlarged - 0.3) / 0.35, torch.from_numpy(found.target)[order]


def _with_ood(samples: Samples, ood: Tensor) -> Samples:
    labels = torch.full((len(ood),), -1)
    return Samples(torch.cat([samples.x, ood]), torch.cat([samples.y, labels]))


def _train(backbone: Backbone, samples: Samples, epochs: int, batch_size: int = 50) -> None:
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
