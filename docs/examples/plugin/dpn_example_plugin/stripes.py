"""A data source: ``stripes:lines`` and ``stripes:squares``."""

import torch

from dpn_plugin.data import Samples
from dpn_plugin.errors import UserError, unknown_name

COUNT, SIZE = 400, 8
SEEDS = {"train": 0, "test": 1}
DIRECTIONS = {"across": (1, 0), "down": (0, 1), "rising": (1, 1), "falling": (1, -1)}


def load(argument, *, split, root):
    """
    Return noisy images of stripes or squares.

    :param argument: ``lines`` (four classes) or ``squares`` (no classes)
    :param split: ``train`` (default) or ``test``, which have different noise
    :param root: the folder of downloaded data; nothing is downloaded here
    """
    if argument not in ("lines", "squares"):
        raise unknown_name("kind of stripes", argument, ("lines", "squares"))
    if split not in (None, *SEEDS):
        raise UserError(f"split of stripes:{argument} must be 'train' or 'test', not {split!r}.")
    generator = torch.Generator().manual_seed(SEEDS[split or "train"])
    row, column = torch.meshgrid(torch.arange(SIZE), torch.arange(SIZE), indexing="ij")
    if argument == "squares":
        patterns, labels = (row // 2 + column // 2)[None] % 2, torch.full((COUNT,), -1)
    else:
        patterns = torch.stack([(a * row + b * column) // 2 % 2 for a, b in DIRECTIONS.values()])
        labels = torch.arange(COUNT) % len(patterns)
    noise = 80 * torch.rand(COUNT, SIZE, SIZE, generator=generator)
    images = (170 * patterns[labels.clamp(min=0)] + noise).to(torch.uint8)
    classes = () if argument == "squares" else tuple(DIRECTIONS)
    return Samples(images[:, None], labels, f"stripes:{argument}", classes)
