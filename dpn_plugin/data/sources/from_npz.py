"""``npz:FILE``: images, labels and class names as NumPy arrays."""

from pathlib import Path

import numpy as np
import torch
from torch import Tensor

from dpn_plugin.data.samples import Samples
from dpn_plugin.data.sources.npz_headers import check_headers
from dpn_plugin.data.sources.paths import located, refuse_split
from dpn_plugin.errors import UserError

__all__ = ["load"]


def load(
    argument: str, *, split: str | None, root: Path, base: str | Path | None = None
) -> Samples:
    """
    Read ``images`` (``uint8`` of shape (N, H, W) or (N, H, W, C) with 1 or 3 channels), ``labels``
    (integers of shape (N,); left out: no labels) and ``classes`` (text, the name of each label;
    may be left out).

    :param argument: path of the file
    :raises UserError: if the file is not as described, or declares more than the memory holds
    """
    source = f"npz:{argument}"
    refuse_split(source, split)
    path = located("npz", argument, root, base)
    if not path.is_file():  # reading a pipe would wait for ever
        raise UserError(f"{path} is not a file.")
    try:
        check_headers(path)
        with np.load(path, allow_pickle=False) as arrays:
            if "images" not in arrays:
                raise UserError(f"{path} has no array 'images', only {sorted(arrays)}.")
            images = _images(path, arrays["images"])
            labels = _labels(path, arrays.get("labels"), len(images))
            names = arrays.get("classes", np.array([], dtype=str))
    except UserError:
        raise
    # a damaged header makes zipfile and numpy raise whatever comes up, TokenError among others
    except Exception as error:
        raise UserError(f"{path} is damaged or is not an .npz file: {error}") from error
    return Samples(images, labels, source, _classes(path, names, labels))


def _images(path: Path, images: np.ndarray) -> Tensor:
    colour = images.ndim == 4 and images.shape[3] in (1, 3)
    if images.dtype != np.uint8 or not (images.ndim == 3 or colour) or 0 in images.shape[1:]:
        raise UserError(
            f"{path}: images must be uint8 of shape (N, H, W), (N, H, W, 1) or (N, H, W, 3), not "
            f"{images.dtype} of shape {images.shape}."
        )
    tensor = torch.from_numpy(images)
    return tensor.permute(0, 3, 1, 2).contiguous() if colour else tensor[:, None]


def _labels(path: Path, labels: np.ndarray | None, count: int) -> Tensor:
    if labels is None:
        return torch.full((count,), -1)
    if labels.dtype.kind not in "iu" or labels.shape != (count,):
        raise UserError(
            f"{path}: labels must be integers of shape ({count},), one for each image, not "
            f"{labels.dtype} of shape {labels.shape}."
        )
    if labels.dtype == np.uint64 and labels.max(initial=0) > np.iinfo(np.int64).max:
        raise UserError(f"{path}: labels must be below 2^63, not {labels.max()}.")
    return torch.from_numpy(labels.astype(np.int64))


def _classes(path: Path, names: np.ndarray, labels: Tensor) -> tuple[str, ...]:
    if not names.size:
        return ()
    highest = int(labels.max()) if len(labels) else -1
    if names.dtype.kind != "U" or names.ndim != 1 or len(names) <= highest:
        raise UserError(
            f"{path}: classes must be text, one name for each label up to {highest}, not "
            f"{names.dtype} of shape {names.shape}."
        )
    return tuple(names.tolist())
