"""A problem that is solved in an instant: four patterns, a small network that knows them, noise."""

from copy import deepcopy
from dataclasses import dataclass
from functools import cache

import torch
from torch import Tensor, nn
from torch.nn import functional as F
from torch.utils.data import DataLoader, TensorDataset

from dpn_plugin.backbones import Backbone, create_backbone

__all__ = ["CLASSES", "Toy", "toy"]

CLASSES = 4
PER_CLASS = 25
TESTED = 12
SHAPE = (1, 8, 8)
#: of the largest logits, roughly
LOGIT = 8.0


@dataclass(frozen=True)
class Toy:
    """
    :param model: classifies the patterns
    :param x: images to fit detectors on
    :param y: their classes
    :param inside: other images of the same classes
    :param outside: noise
    """

    model: Backbone
    x: Tensor
    y: Tensor
    inside: Tensor
    outside: Tensor

    def loader(self) -> DataLoader:
        """:return: what a detector is fitted on, with some OOD samples among it"""
        x = torch.cat([self.x, self.outside.flip(0)])
        y = torch.cat([self.y, torch.full((len(self.outside),), -1)])
        return DataLoader(TensorDataset(x, y), batch_size=50)

    def backbone(self) -> Backbone:
        """:return: a copy of the model that may be spoilt"""
        return deepcopy(self.model)


@cache
def toy() -> Toy:
    """:return: the same problem at every call"""
    with torch.random.fork_rng():
        torch.manual_seed(0)
        patterns = F.interpolate(torch.randn(CLASSES, 1, 4, 4), SHAPE[1:])
        y = torch.arange(CLASSES).repeat(PER_CLASS)
        x = patterns[y] + 0.3 * torch.randn(len(y), *SHAPE)
        tested = torch.arange(TESTED) % CLASSES
        inside = patterns[tested] + 0.3 * torch.randn(TESTED, *SHAPE)
        outside = 3 * torch.rand(TESTED, *SHAPE) - 1.5
        model = create_backbone(
            "test_resnet", CLASSES, in_chans=SHAPE[0], image_size=SHAPE[1], drop_rate=0.2
        )
        _learn(model, x, y)
    return Toy(model, x, y, inside, outside)


@torch.no_grad()
def _learn(model: Backbone, x: Tensor, y: Tensor) -> None:
    """Random features and the nearest class mean: no training, and no wrong answers."""
    norms = [each for each in model.modules() if isinstance(each, nn.BatchNorm2d)]
    for norm in norms:
        norm.momentum = 1.0  # one pass, and they know the data
    model.train()
    model(x)
    model.eval()
    features = model.encoder(x)
    means = torch.stack([features[y == label].mean(dim=0) for label in range(CLASSES)])
    centre = means.mean(dim=0)
    weight = means - centre
    # argmin |f - mean| is argmax f.w - mean.w / 2 - centre.w / 2
    bias = -((means + centre) * weight).sum(dim=1) / 2
    scale = LOGIT / (features @ weight.T + bias).amax(dim=1).mean()
    head = model.model.get_classifier()
    head.weight.copy_(scale * weight)
    head.bias.copy_(scale * bias)
