"""Creates backbones by name."""

import warnings
from collections.abc import Iterator
from math import prod
from typing import Any

import timm
import torch
from torch import Tensor, nn

from dpn_plugin.backbones.backbone import Backbone
from dpn_plugin.backbones.hub import published_weights
from dpn_plugin.backbones.inputs import config_of, plan_input
from dpn_plugin.backbones.loading import WeightsDoNotFit, load_weights
from dpn_plugin.backbones.stems import shrink_stem, small_stem_arguments
from dpn_plugin.backbones.weights import WeightsFile, read_state_dict
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
    weights: WeightsFile | None = None,
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
    :param weights: load the weights of this file; a head for other classes is not loaded, and
        ``backbone.weights_classes`` tells for how many it was
    :raises UserError: if there is no such model, it cannot be built with these arguments, it gives
        no logits, or the weights cannot be had or do not fit
    """
    _check_arguments(num_classes, in_chans, drop_rate)
    stem, size = plan_input(name, image_size, stem)
    arguments = {"num_classes": num_classes, "in_chans": in_chans, "drop_rate": drop_rate}
    if stem == "small":
        arguments |= small_stem_arguments(name, size)
    model, classes = _built(name, stem, arguments, pretrained, weights)
    channels = in_chans or config_of(name).input_size[0]
    backbone = Backbone(model, name, stem, (channels, size, size) if size > 1 else (channels,))
    backbone.weights_classes = classes
    _check_outputs(backbone)
    return backbone


def _check_arguments(num_classes: int, in_chans: int | None, drop_rate: float | None) -> None:
    for name, count in (("num_classes", num_classes), ("in_chans", in_chans)):
        if count is not None and count < 1:
            raise UserError(f"{name} must be at least 1, not {count}.")
    if drop_rate is not None and not 0 <= drop_rate < 1:
        raise UserError(f"drop_rate must be at least 0 and below 1, not {drop_rate}.")


def _built(
    name: str,
    stem: str,
    arguments: dict[str, Any],
    pretrained: bool,
    weights: WeightsFile | None,
) -> tuple[nn.Module, int | None]:
    """Return a model with its stem and its weights, and the number of classes of their head."""
    if weights is not None:
        return _with_weights(name, stem, arguments, weights)
    classes = None
    if pretrained:
        model, classes = _published(name, arguments)
    else:
        model = _create(name, arguments)
    if stem == "small":
        shrink_stem(name, model)
    return model, classes


def _published(name: str, arguments: dict[str, Any]) -> tuple[nn.Module, int | None]:
    path, wanted = published_weights(name), arguments["num_classes"]
    # timm converts its own files, also to other numbers of channels and other patches
    overlay = {"file": str(path), "source": ""}
    model = _create(name, arguments, pretrained=True, pretrained_cfg_overlay=overlay)
    classes = config_of(name).num_classes
    if classes != wanted:
        warnings.warn(
            f"The weights of {name!r} have a head for {classes} classes; a new one for {wanted} "
            "classes starts from random weights."
        )
    return model, classes


def _with_weights(
    name: str, stem: str, arguments: dict[str, Any], weights: WeightsFile
) -> tuple[nn.Module, int | None]:
    """Load weights of the network with its own stem, or with the small one that is asked for."""
    state = read_state_dict(weights)
    problems = []
    for model, shrink_later in _candidates(name, stem, arguments):
        try:
            classes = load_weights(model, state, weights.path, name)
        except WeightsDoNotFit as problem:
            problems.append(problem)
            continue
        if shrink_later:
            shrink_stem(name, model)
        return model, classes
    raise problems[0]


def _candidates(
    name: str, stem: str, arguments: dict[str, Any]
) -> Iterator[tuple[nn.Module, bool]]:
    """Yield models that weights may fit, and whether their stem is shrunk afterwards."""
    yield _create(name, arguments), stem == "small"
    if stem == "small":
        model = _create(name, arguments)
        shrink_stem(name, model)
        yield model, False


def _create(name: str, arguments: dict[str, Any], **more: Any) -> nn.Module:
    try:
        return timm.create_model(name, **more, **arguments)
    except HOST_ERRORS as error:
        given = {key: value for key, value in arguments.items() if value is not None}
        raise UserError(f"timm cannot build {name!r} with {given}: {error}") from error


@torch.no_grad()
def _check_outputs(backbone: Backbone) -> None:
    """Run the model on one input and find its features and its head."""
    size = backbone.input_size
    x = torch.linspace(-1, 1, prod(size)).reshape(1, *size)
    backbone.eval()
    try:
        logits = backbone(x)
    except HOST_ERRORS as error:
        raise UserError(f"Backbone {backbone.name!r} fails on inputs of {size}: {error}") from error
    if not isinstance(logits, Tensor) or logits.shape != (1, backbone.num_classes):
        raise UserError(f"Backbone {backbone.name!r} gives no logits; it may be an encoder alone.")
    try:
        backbone.measure(x)
    except (*HOST_ERRORS, NotImplementedError) as error:
        raise UserError(
            f"Backbone {backbone.name!r} has no features before its head: {error}"
        ) from error
    backbone.train()
