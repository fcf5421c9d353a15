"""``sklearn:NAME``: data that is part of scikit-learn, so nothing is downloaded."""

from pathlib import Path

import numpy as np
import torch
from sklearn.datasets import load_digits, load_sample_image

from dpn_plugin.data.samples import Samples
from dpn_plugin.data.sources import refuse_split
from dpn_plugin.errors import UserError, unknown_name

_PHOTOGRAPHS = ("china", "flower")


def load(
    argument: str,
    *,
    split: str | None,
    root: Path,
    patches: int = 1000,
    size: int = 32,
    seed: int = 0,
) -> Samples:
    """
    Return the digits, or patches of a photograph.

    ``digits``: 1,797 grey images of 8 x 8, ten classes. ``photograph/china``,
    ``photograph/flower``: RGB patches of a sample photograph at random, distinct positions.

    :param argument: one of the names above
    :param split: not allowed: there are no splits
    :param root: not used
    :param patches: number of patches of a photograph
    :param size: height and width of a patch
    :param seed: determines the positions
    """
    source = f"sklearn:{argument}"
    refuse_split(source, split)
    if argument == "digits":
        return _digits(source)
    kind, _, name = argument.partition("/")
    if kind != "photograph" or name not in _PHOTOGRAPHS:
        known = ["digits", *(f"photograph/{name}" for name in _PHOTOGRAPHS)]
        raise unknown_name("scikit-learn data set", argument, known)
    return _photograph_patches(source, load_sample_image(f"{name}.jpg"), patches, size, seed)


def _digits(source: str) -> Samples:
    digits = load_digits()
    pixels = np.rint(digits.images * (255 / 16)).astype(np.uint8)  # sixteen grey levels
    return Samples(
        torch.from_numpy(pixels)[:, None],
        torch.from_numpy(digits.target.astype(np.int64)),
        source,
        tuple(str(name) for name in digits.target_names),
    )


def _photograph_patches(
    source: str, photograph: np.ndarray, patches: int, size: int, seed: int
) -> Samples:
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
    pixels = windows[positions // columns, positions % columns]
    return Samples(torch.from_numpy(pixels.copy()), torch.zeros(patches, dtype=torch.int64), source)
