"""Stems for small images: ImageNet stems discard three quarters of a 32-pixel image or more."""

from collections.abc import Callable
from typing import Any

from timm.models import is_model_in_modules
from torch import nn

VIT_PATCH = 4
CONVNEXT_PATCH = 2


def supports_small_stem(name: str) -> bool:
    """
    Return whether a model belongs to one of :data:`SMALL_STEM_FAMILIES`.

    :param name: a timm id
    """
    return is_model_in_modules(name, SMALL_STEM_FAMILIES)


def small_stem_arguments(name: str, size: int) -> dict[str, Any]:
    """
    Return arguments of ``timm.create_model`` for families that have a small stem in timm.

    A vision transformer gets patches of 4 pixels, to which published weights are resampled.

    :param name: a timm id of a family with a small stem
    :param size: pixels along a side
    """
    if is_model_in_modules(name, ["vision_transformer"]):
        return {"img_size": size, "patch_size": VIT_PATCH}
    return {}


def shrink_stem(name: str, model: nn.Module) -> None:
    """
    Replace the stem of a model by a small one, in place.

    Kernels of 3 pixels keep their weights and get a stride of 1. Larger ones are replaced and start
    from random weights, also in a pretrained model.

    :param name: a timm id of a family with a small stem
    :param model: the model of that id
    """
    for family, shrink in _SHRINK.items():
        if is_model_in_modules(name, [family]):
            shrink(model)


def _resnet(model: Any) -> None:
    if isinstance(model.conv1, nn.Conv2d):
        model.conv1 = _stride_one(model.conv1)
    else:  # a deep stem: several convolutions, of which the first has the stride
        model.conv1[0] = _stride_one(model.conv1[0])
    model.maxpool = nn.Identity()


def _regnet(model: Any) -> None:
    # with pre-activation the stem is the bare convolution
    _stride_one(getattr(model.stem, "conv", model.stem))


def _densenet(model: Any) -> None:
    model.features.conv0 = _stride_one(model.features.conv0)
    model.features.pool0 = nn.Identity()


def _efficientnet(model: Any) -> None:
    model.conv_stem = _stride_one(model.conv_stem)


def _convnext(model: Any) -> None:
    patch = model.stem[0]
    if patch.kernel_size == (3, 3):  # two overlapping convolutions: the second keeps its stride
        _stride_one(patch)
    else:
        model.stem[0] = _new_convolution(patch, kernel_size=CONVNEXT_PATCH, stride=CONVNEXT_PATCH)


def _stride_one(conv: nn.Conv2d) -> nn.Conv2d:
    if max(conv.kernel_size) > 3:
        return _new_convolution(conv, kernel_size=3, stride=1, padding=1)
    conv.stride = (1, 1)
    return conv


def _new_convolution(conv: nn.Conv2d, **shape: int) -> nn.Conv2d:
    bias = conv.bias is not None
    new = nn.Conv2d(conv.in_channels, conv.out_channels, bias=bias, **shape)  # type: ignore[arg-type]
    nn.init.kaiming_normal_(new.weight, mode="fan_out", nonlinearity="relu")
    if new.bias is not None:
        nn.init.zeros_(new.bias)
    return new


_SHRINK: dict[str, Callable[[Any], None]] = {
    "resnet": _resnet,
    "res2net": _resnet,
    "resnest": _resnet,
    "sknet": _resnet,
    "regnet": _regnet,
    "densenet": _densenet,
    "efficientnet": _efficientnet,
    "mobilenetv3": _efficientnet,
    "convnext": _convnext,
}

SMALL_STEM_FAMILIES = (*_SHRINK, "vision_transformer")
"""timm's modules whose models take ``stem="small"``; e.g. ``timm.list_models(module="resnet")``."""
