"""A detector that is checked: how to make it, fit it and ask it."""

from functools import cached_property
from typing import Any

import torch
from pytorch_ood.api import Detector, GradientDetector
from torch import Tensor

from dpn_plugin.backbones import Backbone
from dpn_plugin.detectors import NotApplicable, wired
from dpn_plugin.testing.rules import CheckSkipped
from dpn_plugin.testing.toy import Toy, toy

__all__ = ["DetectorCase"]


class DetectorCase:
    """
    :param factory: the class of a detector, or a function that makes one
    """

    def __init__(self, factory: Any) -> None:
        self.factory = factory

    @property
    def toy(self) -> Toy:
        """The data that it is tried on."""
        return toy()

    @cached_property
    def backbone(self) -> Backbone:
        """The model of :attr:`fitted`."""
        return self.toy.backbone()

    def made(self, backbone: Backbone) -> Detector:
        """:return: a new detector, not fitted"""
        try:
            return wired(self.factory, backbone)
        except NotApplicable as why:
            raise CheckSkipped(str(why)) from None

    def new(self) -> Detector:
        """:return: a new detector, fitted if it needs to be, with a model of its own"""
        return self._fitted(self.made(self.toy.backbone()))

    @cached_property
    def fitted(self) -> Detector:
        """One detector for all rules that only look at scores."""
        return self._fitted(self.made(self.backbone))

    def _fitted(self, detector: Detector) -> Detector:
        with torch.random.fork_rng():
            torch.manual_seed(0)
            return detector.fit(self.toy.loader()) if detector.requires_fit else detector

    @staticmethod
    def scores(detector: Detector, x: Tensor) -> Tensor:
        """:return: what ``predict`` says, with random numbers that always start alike"""
        gradients = isinstance(detector, GradientDetector)
        with torch.random.fork_rng(), torch.set_grad_enabled(gradients):
            torch.manual_seed(0)
            return detector.predict(x.clone()).detach()
