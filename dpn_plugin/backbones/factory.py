"""Creates backbones by name."""

from math import prod
from typing import Any

import timm
import torch
from timm.models import get_pretrained_cfg
from torch import Tensor, nn

from dpn_plugin.backbones.backbone import Backbone
from dpn_plugin.backbones.inputs import plan_input
from dpn_plugin.backbones.stems import shrink_stem, small_stem_arguments
from dpn_plugin.errors import UserError

# raised by timm's builders and models for arguments or images that they do not support
HOST_ERRORS = (RuntimeError, TypeError, ValueError, AssertionError, LookupError, OSError)


def create_backbone(
    name: str,
    num_classes: int,
    *,
    in_chans: int | None = None,
    image_size: int | None = None,
    stem: str = "auto",
    drop_rate: float | None = None,
    pretrained: bool = False,
) -> Backbone:
    """
    Return a timm model as a backbone.

    The model is tested with one artificial input, so that a model that cannot be used fails here
    and not in the middle of a run.

    :param name: a timm id, e.g. ``"vgg16_cifar"`` or ``"resnet18"``
    :param num_classes: number of logits
    :param in_chans: channels of the images; the default of the model if not given
    :param image_size: pixels along a side of the data's images; :func:`plan_input` decides to which
        size they are resized, and ``backbone.input_size`` holds the result
    :param stem: ``"auto"``, ``"default"`` or ``"small"``, see :func:`plan_input`
    :param drop_rate: timm's dropout before the classifier; the model's default if not given
    :param pretrained: load the weights that timm publishes
    :raises UserError: if there is no such model, or it cannot be built with these arguments, or it
        cannot be split into features and head
    """
    _check_arguments(num_classes, in_chans, drop_rate)
    stem, size = plan_input(name, image_size, stem)
    arguments = {"num_classes": num_classes, "in_chans": in_chans, "drop_rate": drop_rate}
    if stem == "small":
        arguments |= small_stem_arguments(name, size)
    model = _built(name, pretrained, arguments)
    if stem == "small":
        shrink_stem(name, model)
    channels = in_chans or get_pretrained_cfg(name).input_size[0]
    backbone = Backbone(model, name, stem, (channels, size, size) if size > 1 else (channels,))
    _check_split(backbone)
    return backbone


def _check_arguments(num_classes: int, in_chans: int | None, drop_rate: float | None) -> None:
    for name, count in (("num_classes", num_classes), ("in_chans", in_chans)):
        if count is not None and count < 1:
            raise UserError(f"{name} must be at least 1, not {count}.")
    if drop_rate is not None and not 0 <= drop_rate < 1:
        raise UserError(f"drop_rate must be at least 0 and below 1, not {drop_rate}.")


def _built(name: str, pretrained: bool, arguments: dict[str, Any]) -> nn.Module:
    try:
        return timm.create_model(name, pretrained=pretrained, **arguments)
    except HOST_ERRORS as error:
        given = {key: value for key, value in arguments.items() if value is not None}
        raise UserError(f"timm cannot build {name!r} with {given}: {error}") from error


@torch.no_grad()
def _check_split(backbone: Backbone) -> None:
    """Compare the parts with the whole: timm's families differ too much for a list of names."""
    size = backbone.input_size
    x = torch.linspace(-1, 1, prod(size)).reshape(1, *size)
    backbone.eval()
    try:
        logits = backbone(x)
    except HOST_ERRORS as error:
        raise UserError(f"Backbone {backbone.name!r} fails on inputs of {size}: {error}") from error
    if not _same_logits(backbone, x, logits):
        raise UserError(
            f"Backbone {backbone.name!r} cannot be split into features and one head,"
            " which detectors need; models with several heads are of this kind."
        )
    backbone.train()


def _same_logits(backbone: Backbone, x: Tensor, logits: Tensor) -> bool:
    try:
        parts = backbone.outputs(x).logits
    except (*HOST_ERRORS, NotImplementedError):
        return False
    return parts.shape == logits.shape and torch.allclose(parts, logits, 1e-3, 1e-5, equal_nan=True)
