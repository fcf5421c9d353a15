"""``folder:DIR``: image files, one subfolder for each class, or none."""

from pathlib import Path

import torch
from torchvision.datasets import ImageFolder
from torchvision.datasets.folder import IMG_EXTENSIONS

from dpn_plugin.data.image_files import image_reader, is_visible_image
from dpn_plugin.data.lazy_images import LazyImages
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
    if _subfolders(folder):
        files, classes = _by_class(folder)
    else:
        paths = sorted(path for path in folder.iterdir() if is_visible_image(path, folder))
        files, classes = [(str(path), -1) for path in paths], ()
        unlabelled = (
            f"{folder} has no class subfolders. Put the images of each class into a folder of its "
            f"own: {folder.name}/cat/1.png, {folder.name}/dog/1.png"
        )
    if not files:
        raise UserError(f"{source}: {folder} holds no images ({', '.join(IMG_EXTENSIONS)}).")
    labels = torch.tensor([label for _, label in files])
    return LazyImages(image_reader(files), len(files), source, labels, classes, unlabelled)


def _subfolders(folder: Path) -> list[str]:
    names = (entry.name for entry in folder.iterdir() if entry.is_dir())
    return sorted(name for name in names if not name.startswith("."))


class _VisibleFolder(ImageFolder):
    """An ``ImageFolder`` without hidden files and folders."""

    def __init__(self, folder: Path) -> None:
        super().__init__(folder, is_valid_file=lambda path: is_visible_image(Path(path), folder))

    def find_classes(self, directory: str | Path) -> tuple[list[str], dict[str, int]]:
        names = _subfolders(Path(directory))
        return names, {name: label for label, name in enumerate(names)}


def _by_class(folder: Path) -> tuple[list[tuple[str, int]], tuple[str, ...]]:
    try:
        found = _VisibleFolder(folder)
    except FileNotFoundError:
        empty = [name for name in _subfolders(folder) if not _has_image(folder / name)]
        raise UserError(
            f"folder:{folder}: its subfolders are classes, and {choices(empty)} holds no images "
            f"({', '.join(IMG_EXTENSIONS)})."
        ) from None
    return found.samples, tuple(found.classes)


def _has_image(folder: Path) -> bool:
    return any(is_visible_image(path, folder) for path in folder.rglob("*"))
