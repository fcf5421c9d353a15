"""One backbone: a step of training, its outputs, and the detectors that apply to it."""

import time
from dataclasses import dataclass

import torch
from torch import nn
from torch.nn import functional as F

import dpn_plugin
from dpn_plugin.backbones import Backbone, create_backbone
from dpn_plugin.detectors import why_not_applicable
from dpn_plugin.errors import UserError
from dpn_plugin.plugins import registry

__all__ = ["Row", "check"]

CLASSES = 3
#: pixels of the images; backbones resize them as they need
PIXELS = 64


@dataclass(frozen=True)
class Row:
    """
    The result for one backbone.

    :param module: timm's module
    :param model: its model that was tried
    :param reason: why it cannot be used; the other fields keep their defaults then
    :param pixels: along a side of its input
    :param features: their number
    :param head: what it is
    :param maps: whether there are feature maps
    :param applicable: the number of detectors that apply
    :param seconds: the time of everything
    """

    module: str
    model: str
    reason: str = ""
    pixels: int = 0
    features: int = 0
    head: str = ""
    maps: bool = False
    applicable: int = 0
    seconds: float = 0.0


def check(module: str, model: str) -> Row:
    """
    Build, train for a step, and run a model; count the detectors that apply.

    :param module: timm's module
    :param model: a model of it
    """
    start = time.monotonic()
    try:
        backbone = create_backbone(model, CLASSES, image_size=PIXELS)
        _train_step(backbone)
        maps = _check_outputs(backbone)
    except UserError as error:
        return Row(module, model, str(error))
    names = dpn_plugin.list_detectors()
    reasons = {name: why_not_applicable(name, backbone) for name in names}
    _check_logits_detectors(backbone, reasons)
    return Row(
        module,
        model,
        pixels=backbone.input_size[-1],
        features=backbone.num_features,
        head=_head(backbone),
        maps=maps,
        applicable=sum(reason is None for reason in reasons.values()),
        seconds=time.monotonic() - start,
    )


def _train_step(backbone: Backbone) -> None:
    """Take a step of training; the logits of two images must depend on every used weight."""
    torch.manual_seed(0)
    optimizer = torch.optim.SGD(backbone.parameters(), lr=1e-3)
    logits = backbone.train()(torch.randn(2, *backbone.input_size))
    loss = F.cross_entropy(logits, torch.tensor([0, 1]))
    loss.backward()
    norm = nn.utils.clip_grad_norm_(backbone.parameters(), 1.0)  # untrained ones may be huge
    moved = any(each.grad is not None and each.grad.any() for each in backbone.parameters())
    if not (moved and torch.isfinite(loss) and torch.isfinite(norm)):
        raise UserError("A step of training has no gradient or no finite loss.")
    optimizer.step()
    backbone.zero_grad()


@torch.no_grad()
def _check_outputs(backbone: Backbone) -> bool:
    """Compare the outputs of one pass with the model's, and return whether there are maps."""
    x = torch.randn(2, *backbone.eval().input_size)
    found, expected = backbone.outputs(x), backbone.model(x)
    if not torch.allclose(found.logits, expected, 0.0, 1e-3 * float(expected.abs().max())):
        raise UserError("The logits of one pass are not those of the model.")
    if found.features.shape != (2, backbone.num_features):
        raise UserError(f"The features have the shape {tuple(found.features.shape)}.")
    return found.feature_maps is not None


def _check_logits_detectors(backbone: Backbone, reasons: dict[str, str | None]) -> None:
    """Raise if a detector of logits does not apply; these need nothing but logits."""
    for name, reason in reasons.items():
        detector = None if reason is None else registry.load("detectors", name)
        if detector is not None and hasattr(detector, "predict_logits"):
            raise AssertionError(f"{name} on {backbone.name}: {reason}")


def _head(backbone: Backbone) -> str:
    if backbone.is_linear:
        return "linear"
    return backbone.head_description if backbone.splits else "more than its features"
