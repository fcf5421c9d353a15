"""``sklearn:NAME``: data that is part of scikit-learn, so nothing is downloaded."""

from pathlib import Path
from zlib import crc32

import numpy as np
import torch
from sklearn.datasets import load_digits, load_sample_image

from dpn_plugin.data.samples import Samples
from dpn_plugin.data.sources import refuse_split
from dpn_plugin.errors import UserError, choices, unknown_name

_PHOTOGRAPHS = ("china", "flower")
#: where each split of the digits begins and ends, as shares of one random order of them
_SPLITS = {"train": (0.0, 0.5), "calibration": (0.5, 0.6), "test": (0.6, 1.0)}
_SPLIT_SEED = 1797


def load(
    argument: str,
    *,
    split: str | None,
    root: Path,
    patches: int = 1000,
    size: int = 32,
    seed: int = 0,
    noise: float = 0.0,
) -> Samples:
    """
    Return the digits, or patches of a photograph.

    ``digits``: 1,797 grey images of 8 x 8, ten classes. ``photograph/china``,
    ``photograph/flower``: RGB patches of a sample photograph at random, distinct positions.

    :param argument: one of the names above
    :param split: of the digits, ``"train"`` (a half), ``"calibration"`` (a tenth) or ``"test"``:
        parts of one random order. The default is all digits. Photographs have no splits
    :param root: not used
    :param patches: number of patches of a photograph
    :param size: height and width of a patch
    :param seed: determines the positions
    :param noise: standard deviation of Gaussian noise that is added to every pixel, as a share of
        the range from black to white. The same for every call: an image never has two versions
    """
    source = f"sklearn:{argument}"
    if isinstance(noise, bool) or not isinstance(noise, int | float) or not 0 <= noise <= 1:
        raise UserError(f"noise of {source} must be a number between 0 and 1, not {noise!r}.")
    if argument == "digits":
        return _digits(source, split, noise)
    kind, _, name = argument.partition("/")
    if kind != "photograph" or name not in _PHOTOGRAPHS:
        known = ["digits", *(f"photograph/{name}" for name in _PHOTOGRAPHS)]
        raise unknown_name("scikit-learn data set", argument, known)
    refuse_split(source, split)
    pixels = _photograph_patches(source, load_sample_image(f"{name}.jpg"), patches, size, seed)
    labels = torch.zeros(patches, dtype=torch.int64)
    return Samples(torch.from_numpy(_noisy(pixels, noise, source)), labels, source)


def _digits(source: str, split: str | None, noise: float) -> Samples:
    if split not in (None, *_SPLITS):
        raise UserError(f"split of {source} must be {choices(_SPLITS)}, not {split!r}.")
    digits = load_digits()
    pixels = _noisy(digits.images[:, None] * (255 / 16), noise, source)  # sixteen grey levels
    rows = np.arange(len(pixels))
    if split is not None:
        start, stop = (round(share * len(rows)) for share in _SPLITS[split])
        rows = np.sort(np.random.default_rng(_SPLIT_SEED).permutation(rows)[start:stop])
    return Samples(
        torch.from_numpy(pixels[rows]),
        torch.from_numpy(digits.target[rows].astype(np.int64)),
        source,
        tuple(str(name) for name in digits.target_names),
    )


def _noisy(images: np.ndarray, noise: float, source: str) -> np.ndarray:
    """Return the images as bytes, with noise that is the same in all channels."""
    if noise:
        # all images of a source get noise, in order, before any are chosen: each has one version
        generator = np.random.default_rng(crc32(source.encode()))
        grey = generator.standard_normal((len(images), 1, *images.shape[2:]), dtype=np.float32)
        images = np.clip(images + 255 * noise * grey, 0, 255)
    return np.rint(images).astype(np.uint8)


def _photograph_patches(
    source: str, photograph: np.ndarray, patches: int, size: int, seed: int
) -> np.ndarray:
    for name, value in (("patches", patches), ("size", size), ("seed", seed)):
        if not isinstance(value, int) or value < 0:
            raise UserError(f"{name} of {source} must be a whole number, not {value!r}.")
    height, width, _ = photograph.shape
    if not 1 <= size <= min(height, width):
        raise UserError(f"size must be between 1 and {min(height, width)}, not {size}.")
    rows, columns = height - size + 1, width - size + 1
    if not 1 <= patches <= rows * columns:
        raise UserError(f"patches must be between 1 and {rows * columns}, not {patches}.")
    positions = np.random.default_rng(seed).choice(rows * columns, patches, replace=False)
    windows = np.lib.stride_tricks.sliding_window_view(photograph, (size, size), axis=(0, 1))
    return windows[positions // columns, positions % columns]
