"""Coloured fractals: attractors of random iterated function systems."""

from functools import lru_cache

import numpy as np
import torch
from torch import Tensor

#: chaos games played at once for a picture, and steps of each, after some to reach the attractor
_GAMES, _STEPS, _FIRST_STEPS = 400, 120, 20
_MAPS = 4


@lru_cache(maxsize=4)
def fractal_images(count: int, size: tuple[int, int], channels: int, seed: int = 0) -> Tensor:
    """
    Return images of fractals, :math:`N \\times C \\times H \\times W`, from 0 to 1.

    Each is the attractor of a few random contractions of the plane, drawn by the chaos game: a
    point is moved by one of them at a time, chosen at random. Each contraction has a colour.

    :param count: number of images
    :param size: height and width
    :param channels: of colour
    :param seed: the same gives the same images
    """
    rng = np.random.default_rng(seed)
    matrices, offsets = _contractions(rng, count)
    colours = rng.uniform(0.1, 1.0, (count, _MAPS, channels))
    points = rng.uniform(-1, 1, (count, _GAMES, 2))
    found: list[tuple[np.ndarray, np.ndarray]] = []
    pictures = np.arange(count)[:, None]
    for step in range(_FIRST_STEPS + _STEPS):
        chosen = rng.integers(_MAPS, size=(count, _GAMES))
        moved = matrices[pictures, chosen]
        x, y = points[..., 0], points[..., 1]
        points = np.stack([a * x + b * y for a, b in _rows(moved)], axis=-1)
        points += offsets[pictures, chosen]
        if step >= _FIRST_STEPS:
            found.append((points, chosen))
    path = np.concatenate([each for each, _ in found], axis=1)
    maps = np.concatenate([each for _, each in found], axis=1)
    return _drawn(path, np.take_along_axis(colours, maps[..., None], axis=1), size)


def _contractions(rng: np.random.Generator, count: int) -> tuple[np.ndarray, np.ndarray]:
    """Return rotations scaled by two factors below one, N x M x 2 x 2, and shifts, N x M x 2."""
    angles = rng.uniform(0, 2 * np.pi, (2, count, _MAPS))
    scales = rng.uniform(0.3, 0.8, (2, count, _MAPS))
    first, second = (_rotations(each) for each in angles)
    stretched = np.stack([scales[0], scales[1]], axis=-1)[..., None] * second
    return first @ stretched, rng.uniform(-1, 1, (count, _MAPS, 2))


def _rotations(angles: np.ndarray) -> np.ndarray:
    cos, sin = np.cos(angles), np.sin(angles)
    return np.stack([np.stack([cos, -sin], -1), np.stack([sin, cos], -1)], -2)


def _rows(matrices: np.ndarray) -> list[tuple[np.ndarray, np.ndarray]]:
    return [(matrices[..., row, 0], matrices[..., row, 1]) for row in range(2)]


def _drawn(path: np.ndarray, colours: np.ndarray, size: tuple[int, int]) -> Tensor:
    """Return images whose pixels have the mean colour of the points on them."""
    height, width = size
    lowest, highest = path.min(axis=1, keepdims=True), path.max(axis=1, keepdims=True)
    places = (path - lowest) / np.maximum(highest - lowest, 1e-9) * [height - 1, width - 1]
    rows, columns = np.moveaxis(places.round().astype(np.int64), -1, 0)
    pixels = (np.arange(len(path))[:, None] * height + rows) * width + columns
    total = len(path) * height * width
    counts = np.maximum(np.bincount(pixels.ravel(), minlength=total), 1)
    drawn = [
        np.bincount(pixels.ravel(), colours[..., channel].ravel(), total) / counts
        for channel in range(colours.shape[-1])
    ]
    images = np.stack(drawn).reshape(-1, len(path), height, width).swapaxes(0, 1)
    return torch.from_numpy(np.ascontiguousarray(images)).float()
