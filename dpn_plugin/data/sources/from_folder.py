"""``folder:DIR``: image files, one subfolder for each class, or none."""

from collections.abc import Callable
from pathlib import Path

import torch
from PIL import Image, TiffImagePlugin, WebPImagePlugin  # noqa: F401  # register their formats
from torchvision.datasets import ImageFolder
from torchvision.datasets.folder import IMG_EXTENSIONS

from dpn_plugin.data.sources.paths import located
from dpn_plugin.data.undecoded import Undecoded
from dpn_plugin.errors import UserError

__all__ = ["is_image", "load", "reader"]

# Pillow goes by the content: what is called .png but is PostScript would start Ghostscript
_FORMATS = ("PNG", "JPEG", "PPM", "BMP", "DIB", "TIFF", "WEBP", "GIF")


def load(
    argument: str, *, split: str | None, root: Path, base: str | Path | None = None
) -> Undecoded:
    """
    With subfolders, each is a class and classes are numbered by name, as torchvision's
    ``ImageFolder`` does; a folder of images alone has no labels (-1). Files come in sorted order.

    :param argument: path of the folder
    :param split: a folder inside it, e.g. ``"train"``
    :raises UserError: if there is no image
    """
    source = f"folder:{argument}"
    folder = located("folder", argument if split is None else f"{argument}/{split}", root, base)
    if not folder.is_dir():
        raise UserError(f"{source}: {folder} is not a folder.")
    if any(entry.is_dir() and not entry.name.startswith(".") for entry in folder.iterdir()):
        files, classes = _by_class(folder)
    else:
        files = [(str(path), -1) for path in sorted(folder.iterdir()) if is_image(path)]
        classes = ()
    if not files:
        raise UserError(f"{source}: {folder} holds no images ({', '.join(IMG_EXTENSIONS)}).")
    labels = torch.tensor([label for _, label in files])
    return Undecoded(reader(files), len(files), source, labels, classes)


def _by_class(folder: Path) -> tuple[list[tuple[str, int]], tuple[str, ...]]:
    try:
        found = ImageFolder(folder)
    except FileNotFoundError as error:
        raise UserError(f"folder:{folder}: {error}") from error
    return found.samples, tuple(found.classes)


def is_image(path: Path) -> bool:
    """:return: whether the file's name says that it is an image"""
    return path.suffix.lower() in IMG_EXTENSIONS


def reader(files: list[tuple[str, int]]) -> Callable[[int], tuple[Image.Image, int]]:
    """
    :param files: paths and labels
    :return: what reads image and label of a position
    """

    def read(index: int) -> tuple[Image.Image, int]:
        path, label = files[index]
        try:
            if not Path(path).is_file():  # reading a pipe would wait for ever
                raise OSError("it is not a file")
            with Image.open(path, formats=_FORMATS) as image:
                image.load()
        # a damaged file makes Pillow raise whatever comes up, SyntaxError and struct.error too
        except Exception as error:
            raise UserError(f"{path} is not a readable image: {error}") from error
        return image, label

    return read
