"""Images that are not a data set: single files, folders of them, archives."""

import os
from collections.abc import Sequence
from pathlib import Path

import torch

from dpn_plugin.data.loading import load
from dpn_plugin.data.samples import Samples
from dpn_plugin.data.sources.from_folder import is_image, reader
from dpn_plugin.data.spec import SourceSpec
from dpn_plugin.data.undecoded import Undecoded
from dpn_plugin.errors import UserError

__all__ = ["load_pictures"]


def load_pictures(
    paths: Sequence[Path], image_size: tuple[int, int], channels: int
) -> tuple[Samples, list[str]]:
    """
    :param paths: image files, folders (read with all that is in them), or ``.npz`` archives
    :param image_size: height and width to bring them to
    :param channels: 1 or 3
    :return: the images, without labels, and a name for each
    :raises UserError: if one is missing or cannot be read
    """
    parts, names = [], []
    for path in paths:
        if path.suffix == ".npz":
            spec = SourceSpec(source=f"npz:{path}")
            parts.append(load(spec, root=Path(), image_size=image_size, channels=channels))
            names += [f"{_shown(path)}[{index}]" for index in range(len(parts[-1]))]
        else:
            files = _files(path)
            parts.append(_decoded(files, image_size, channels))
            names += map(_shown, files)
    inputs = torch.cat([part.inputs for part in parts])
    return Samples(inputs, torch.full((len(inputs),), -1), "images"), names


def _shown(path: str | Path) -> str:
    # the system allows names that are not UTF-8, tables and JSON do not
    return os.fsencode(path).decode("utf-8", "backslashreplace")


def _files(path: Path) -> list[str]:
    if path.is_file():
        return [str(path)]
    if not path.is_dir():
        raise UserError(f"There is no image or folder {path}.")
    found = sorted(str(each) for each in path.rglob("*") if is_image(each))
    if not found:
        raise UserError(f"The folder {path} holds no images.")
    return found


def _decoded(files: list[str], image_size: tuple[int, int], channels: int) -> Samples:
    read = reader([(file, -1) for file in files])
    images = Undecoded(read, len(files), "images")
    return images.decoded(torch.arange(len(files)), image_size, channels)
