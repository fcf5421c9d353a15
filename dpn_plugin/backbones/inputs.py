"""The input of a backbone: its stem, the size of its images, their normalisation."""

from collections.abc import Sequence
from functools import cache
from typing import Any, Literal, NamedTuple

import timm
import torch
from timm.models import PretrainedCfg, get_pretrained_cfg

from dpn_plugin.backbones import mlp, vgg  # noqa: F401  # importing them registers their models
from dpn_plugin.backbones.stems import SMALL_STEM_FAMILIES, supports_small_stem
from dpn_plugin.errors import UserError, choices, unknown_name

STEMS = ("auto", "default", "small")
SMALL_IMAGE = 64
SMALL_DEFAULT = 32
SMALL_STEP = 4  # the small patch of a vision transformer; other families take any size
LARGE_MINIMUM = 96
LARGE_STEP = 32


def plan_input(name: str, image_size: int | None = None, stem: str = "auto") -> tuple[str, int]:
    """
    Return the stem of a backbone and the size to which images are resized for it.

    ``"auto"`` means ``"small"`` for images of at most 64 pixels where the family supports it (see
    :data:`dpn_plugin.backbones.stems.SMALL_STEM_FAMILIES`), else ``"default"``. The size is then

    - with the small stem: the images' own, rounded up to a multiple of 4 (32 if none is given);
    - for a model designed for small images (``vgg16_cifar``, ``mlp_synthetic``): the images' own;
    - for a model with a fixed size (ViT, Swin and the like): its own;
    - for any other: the images' own, at least 96, rounded up to a multiple of 32 (of the patch
      size where 32 is not divisible by it).

    :param name: a timm id
    :param image_size: pixels along a side of the data's images; without it, the model's own size
    :param stem: ``"auto"``, ``"default"`` or ``"small"``
    :return: ``"default"`` or ``"small"``, and pixels along a side (1 for points)
    :raises UserError: for an unknown name or stem, or a family without a small stem
    """
    check_name(name)
    stem = _resolved_stem(name, image_size, stem)
    if image_size is not None and image_size < 1:
        raise UserError(f"image_size must be positive, not {image_size}.")
    if stem == "small":
        return stem, _rounded_up(image_size or SMALL_DEFAULT, SMALL_STEP)
    return stem, _default_stem_size(name, image_size)


def describe_resizing(name: str, image_size: int, stem: str = "auto") -> str | None:
    """
    Return what resizing the images for a backbone costs and how to change it.

    :param name: a timm id
    :param image_size: pixels along a side of the data's images
    :param stem: as for :func:`plan_input`
    :return: two sentences; ``None`` if the images keep their size
    """
    planned, size = plan_input(name, image_size, stem)
    if size in (1, image_size):  # 1: a network for points, which takes no images
        return None
    ratio = (size / image_size) ** 2
    return (
        f"For {name}, images of {image_size} x {image_size} pixels are resized to {size} x {size}: "
        f"{size**2:,} pixels per image instead of {image_size**2:,}, which is {ratio:.3g} times "
        f"the time and memory, roughly. {_other_size(name, planned)}"
    )


def _other_size(name: str, stem: str) -> str:
    """Return how images can keep their size."""
    if stem == "small":
        return f"Sizes that are a multiple of {SMALL_STEP} are kept."
    if supports_small_stem(name):
        return 'They keep their size with the small stem: stem = "small" in [train], or --stem.'
    return (
        "Its family has no small stem; images keep their size with vgg16_cifar and with the timm "
        f"families {', '.join(SMALL_STEM_FAMILIES)}: --backbone."
    )


class Preprocessing(NamedTuple):
    """
    How images are prepared for a network.

    :param mean: one for each channel
    :param std: one for each channel
    :param interpolation: ``"bilinear"`` or ``"bicubic"``
    :param crop: the share of the resized image's side that the network sees
    """

    mean: tuple[float, ...]
    std: tuple[float, ...]
    interpolation: Literal["bilinear", "bicubic"] = "bilinear"
    crop: float = 1.0


def own_preprocessing(model: Any, channels: int) -> Preprocessing:
    """
    Return the preprocessing of timm's configuration of a model.

    If the number of channels differs from the model's configuration, each channel gets the average
    over the configured ones.

    :param model: a timm model
    :param channels: number of channels of its input
    """
    config = timm.data.resolve_data_config(model=model)
    return Preprocessing(
        _per_channel(config["mean"], channels),
        _per_channel(config["std"], channels),
        "bilinear" if config["interpolation"] == "bilinear" else "bicubic",
        float(config["crop_pct"]),
    )


def config_of(name: str) -> PretrainedCfg:
    """Return timm's configuration of a model; its default for names that have none of their own."""
    return get_pretrained_cfg(name) or PretrainedCfg(input_size=(3, 224, 224))


def check_name(name: str) -> None:
    """
    Check that timm has a model of this name.

    :param name: a timm id
    :raises UserError: if there is none, with the nearest names
    """
    if not timm.is_model(name):
        raise unknown_name("backbone", name, timm.list_models())
    try:
        get_pretrained_cfg(name)
    except RuntimeError as error:  # the part after the dot names published weights
        known = timm.list_pretrained(f"{name.partition('.')[0]}.*")
        raise unknown_name("backbone", name, known) from error


def _resolved_stem(name: str, image_size: int | None, stem: str) -> str:
    if stem not in STEMS:
        raise UserError(f"stem must be {choices(STEMS)}, not {stem!r}.")
    supported = supports_small_stem(name)
    if stem == "small" and not supported:
        raise UserError(
            f"stem='small' is not offered for {name!r}, only for the timm families"
            f" {', '.join(SMALL_STEM_FAMILIES)}. With stem='default' images are resized instead."
        )
    if stem == "auto":
        small = supported and image_size is not None and image_size <= SMALL_IMAGE
        return "small" if small else "default"
    return stem


def _default_stem_size(name: str, image_size: int | None) -> int:
    config = config_of(name)
    own = config.input_size[-1]
    if own == 1 or image_size is None or config.fixed_input_size:
        return own
    if own <= SMALL_IMAGE:
        return image_size
    least = config.min_input_size[-1] if config.min_input_size else LARGE_MINIMUM
    step = LARGE_STEP if own % LARGE_STEP == 0 else _patch_step(name)
    return _rounded_up(max(image_size, least), step)


@cache
def _patch_step(name: str) -> int:
    """Return the step between the sizes that a model takes, from its patches if it has any."""
    try:
        with torch.random.fork_rng(devices=[]), torch.device("meta"):  # no memory is used
            model = timm.create_model(name)
    except (RuntimeError, NotImplementedError):  # a builder that computes with its weights
        return LARGE_STEP
    # an encoder inside the model may hold it
    named = [each for name, each in model.named_modules() if name.endswith("patch_embed")]
    patch = getattr(named[0], "patch_size", 1) if named else 1
    size = max(patch) if isinstance(patch, tuple | list) else int(patch)
    return LARGE_STEP if LARGE_STEP % size == 0 else size


def _rounded_up(size: int, step: int) -> int:
    return -(-size // step) * step


def _per_channel(values: Sequence[float], channels: int) -> tuple[float, ...]:
    if len(values) == channels:
        return tuple(values)
    return (sum(values) / len(values),) * channels
