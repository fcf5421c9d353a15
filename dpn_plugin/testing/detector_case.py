"""
A detector under test, and the toy problem that it is fitted to and scored on: images of four
patterns, a small network that classifies them without error, and noise.
"""

from copy import deepcopy
from dataclasses import dataclass
from functools import cache
from typing import Any

import torch
from pytorch_ood.api import Detector, GradientDetector
from torch import Tensor, nn
from torch.nn import functional as F
from torch.utils.data import DataLoader, TensorDataset

from dpn_plugin.backbones import Backbone, create_backbone
from dpn_plugin.detectors import NotApplicable, wired
from dpn_plugin.testing.checks import CheckSkipped

CLASSES = 4
PER_CLASS = 25
TESTED = 12
SHAPE = (1, 8, 8)
#: the approximate mean of the largest logits
LOGIT = 8.0


@dataclass(frozen=True)
class Toy:
    """
    The toy problem.

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
        """Return the data that a detector is fitted to; some of the samples are OOD."""
        x = torch.cat([self.x, self.outside.flip(0)])
        y = torch.cat([self.y, torch.full((len(self.outside),), -1)])
        return DataLoader(TensorDataset(x, y), batch_size=50)

    def backbone(self) -> Backbone:
        """Return a copy of the model that may be changed."""
        return deepcopy(self.model)


@cache
def toy() -> Toy:
    """Return the toy problem, the same at every call."""
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
        _fit_head(model, x, y)
    return Toy(model, x, y, inside, outside)


@torch.no_grad()
def _fit_head(model: Backbone, x: Tensor, y: Tensor) -> None:
    """Classify random features by the nearest class mean, which needs no training."""
    norms = [each for each in model.modules() if isinstance(each, nn.BatchNorm2d)]
    for norm in norms:
        norm.momentum = 1.0  # one pass sets the statistics
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


class DetectorCase:
    """
    A detector under test.

    :param factory: the class of a detector, or a function that makes one
    """

    def __init__(self, factory: Any) -> None:
        self.factory = factory
        self.toy = toy()
        #: the model of :meth:`fitted`
        self.backbone = self.toy.backbone()
        self._fitted_once = cache(lambda: self._fit(self.create(self.backbone)))

    def create(self, backbone: Backbone) -> Detector:
        """Return a new detector, not fitted."""
        try:
            return wired(self.factory, backbone)
        except NotApplicable as why:
            raise CheckSkipped(str(why)) from None

    def create_fitted(self) -> Detector:
        """Return a new detector with a model of its own, fitted if it requires fitting."""
        return self._fit(self.create(self.toy.backbone()))

    def fitted(self) -> Detector:
        """Return the fitted detector that all rules about scores share."""
        return self._fitted_once()

    def _fit(self, detector: Detector) -> Detector:
        with torch.random.fork_rng():
            torch.manual_seed(0)
            return detector.fit(self.toy.loader()) if detector.requires_fit else detector

    @staticmethod
    def scores(detector: Detector, x: Tensor) -> Tensor:
        """Return the scores of ``predict``, computed with the same random seed at every call."""
        gradients = isinstance(detector, GradientDetector)
        with torch.random.fork_rng(), torch.set_grad_enabled(gradients):
            torch.manual_seed(0)
            return detector.predict(x.clone()).detach()
