"""``folder:DIR``: image files, one subfolder for each class, or none."""

import os
from collections.abc import Iterator, Sequence
from pathlib import Path

import torch
from torch import Tensor
from torchvision.datasets.folder import IMG_EXTENSIONS

from dpn_plugin.data.image_files import images_of_files, is_visible_image
from dpn_plugin.data.lazy_images import LazyImages
from dpn_plugin.data.origins import FileList
from dpn_plugin.data.sources import find_path
from dpn_plugin.errors import UserError, choices


def load(
    argument: str, *, split: str | None, root: Path, base: str | Path | None = None
) -> LazyImages:
    """
    Return the images of a folder, in sorted order.

    With subfolders, each is a class and classes are numbered by name, as torchvision's
    ``ImageFolder`` does; a folder that holds only images has no labels (-1). Hidden files and
    folders are ignored.

    :param argument: path of the folder
    :param split: a folder inside it, e.g. ``"train"``
    :param root: folder of downloaded data sets
    :param base: where relative paths start; then ``root``
    :raises UserError: if there is no image
    """
    source = f"folder:{argument}"
    folder = find_path("folder", argument if split is None else f"{argument}/{split}", root, base)
    if not folder.is_dir():
        raise UserError(f"{source}: {folder} is not a folder.")
    unlabelled = ""
    files: Sequence[str]
    if _subfolders(folder):
        files, labels, classes = _by_class(folder)
    else:
        paths = sorted(path for path in folder.iterdir() if is_visible_image(path, folder))
        files, labels, classes = [str(path) for path in paths], None, ()
        unlabelled = (
            f"{folder} has no class subfolders. Put the images of each class into a folder of its "
            f"own: {folder.name}/cat/1.png, {folder.name}/dog/1.png"
        )
    if not files:
        raise UserError(f"{source}: {folder} holds no images ({', '.join(IMG_EXTENSIONS)}).")
    return images_of_files(files, source, labels, classes, unlabelled)


def _subfolders(folder: Path) -> list[str]:
    names = (entry.name for entry in folder.iterdir() if entry.is_dir())
    return sorted(name for name in names if not name.startswith("."))


def _by_class(folder: Path) -> tuple[Sequence[str], Tensor | None, tuple[str, ...]]:
    """Return paths, labels and class names in the order of torchvision's ``ImageFolder``."""
    classes = _subfolders(folder)
    counts = [0] * len(classes)

    def paths() -> Iterator[str]:
        for label, name in enumerate(classes):
            for path in _images_below(folder / name):
                counts[label] += 1
                yield path

    files = FileList(paths())
    if empty := [name for name, count in zip(classes, counts, strict=True) if not count]:
        raise UserError(
            f"folder:{folder}: its subfolders are classes, and {choices(empty)} holds no images "
            f"({', '.join(IMG_EXTENSIONS)})."
        )
    labels = torch.repeat_interleave(torch.arange(len(classes)), torch.tensor(counts))
    return files, labels, tuple(classes)


def _images_below(folder: Path) -> Iterator[str]:
    for root, _, names in sorted(os.walk(folder, followlinks=True)):
        for name in sorted(names):
            if is_visible_image(Path(root, name), folder):
                yield os.path.join(root, name)
