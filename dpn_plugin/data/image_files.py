"""Image files: how they are read, and loading those that are not part of a data set."""

import os
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import BinaryIO

import torch
from PIL import Image, TiffImagePlugin, WebPImagePlugin  # noqa: F401  # register their formats
from torch import Tensor
from torchvision.datasets.folder import IMG_EXTENSIONS

from dpn_plugin.data.inputs import join
from dpn_plugin.data.lazy_images import LazyImages
from dpn_plugin.data.loading import load
from dpn_plugin.data.origins import FileList, FileOrigin
from dpn_plugin.data.samples import Samples
from dpn_plugin.data.spec import SourceSpec
from dpn_plugin.errors import UserError

# Pillow goes by the content: a PostScript file with the name .png would start Ghostscript
_FORMATS = ("PNG", "JPEG", "PPM", "BMP", "DIB", "TIFF", "WEBP", "GIF")


def load_image_files(
    paths: Sequence[str | Path], image_size: tuple[int, int], channels: int
) -> tuple[Samples, list[str]]:
    """
    Return images without labels, and a name for each.

    :param paths: image files, folders (searched recursively, except for hidden
        files and folders), or ``.npz`` archives
    :param image_size: height and width to bring them to
    :param channels: 1 or 3
    :raises UserError: if one is missing or cannot be read
    """
    parts, names = [], []
    for path in map(Path, paths):
        if path.suffix == ".npz":
            spec = SourceSpec(source=f"npz:{path}")
            parts.append(load(spec, root=Path(), image_size=image_size, channels=channels))
            names += [f"{_printable(path)}[{index}]" for index in range(len(parts[-1]))]
        else:
            files = find_image_files(path)
            images = images_of_files(files, "images")
            parts.append(images.decode(torch.arange(len(files)), image_size, channels))
            names += map(_printable, files)
    inputs = join([part.inputs for part in parts])
    return Samples(inputs, torch.full((len(inputs),), -1), "images"), names


def is_image(path: Path) -> bool:
    """Return whether the name of a file has the ending of an image format."""
    return path.suffix.lower() in IMG_EXTENSIONS


def is_visible_image(path: Path, folder: Path) -> bool:
    """
    Return whether a file is an image, and neither it nor a folder on its way is hidden.

    Notebooks, file managers and synchronisation keep copies in hidden folders.

    :param path: the file
    :param folder: where the search for images started
    """
    hidden = any(part.startswith(".") for part in path.relative_to(folder).parts)
    return is_image(path) and not hidden


def images_of_files(
    files: Sequence[str],
    name: str,
    labels: Tensor | None = None,
    classes: tuple[str, ...] = (),
    unlabelled: str = "",
) -> LazyImages:
    """
    Return the images of files, which are read when they are needed.

    :param files: paths
    :param name: the name of the data in messages
    :param labels: ``int64``, one for each file; all -1 if there are none
    :param classes: the name of each label, in order
    :param unlabelled: why the images have no labels, and how to give them some, for messages
    """
    files = files if isinstance(files, FileList) else FileList(files)
    labels = torch.full((len(files),), -1) if labels is None else labels
    read, origin = _ImageReader(files, labels), FileOrigin(files)
    return LazyImages(read, len(files), name, labels, classes, unlabelled, origin)


@dataclass(frozen=True, eq=False)
class _ImageReader:
    """Reads the image and the label of a position, in this process or in a worker."""

    files: FileList
    labels: Tensor

    def __call__(self, index: int) -> tuple[Image.Image, int]:
        return open_image(self.files[index]), int(self.labels[index])


def open_image(content: str | BinaryIO, name: str = "") -> Image.Image:
    """
    Return an image that is read to its end.

    :param content: the path of a file, or a file that is open
    :param name: what messages call it; its path if not given
    :raises UserError: if it is missing, damaged, or not of a known format
    """
    try:
        if isinstance(content, str) and not os.path.isfile(content):
            # reading a named pipe would block
            exists = os.path.exists(content)
            raise OSError("it is not a file" if exists else "there is no such file")
        with Image.open(content, formats=_FORMATS) as image:
            image.load()
    # a damaged file makes Pillow raise all kinds of errors, SyntaxError and struct.error too
    except Exception as error:
        raise UserError(f"{name or content} is not a readable image: {error}") from error
    return image


def find_image_files(path: Path) -> list[str]:
    """
    Return the path of an image file, or those of all images in a folder, sorted.

    :param path: a file, or a folder that is searched recursively, except for hidden files
    :raises UserError: if there is none
    """
    if path.is_file():
        return [str(path)]
    if not path.is_dir():
        raise UserError(f"There is no image or folder {path}.")
    found = sorted(str(each) for each in path.rglob("*") if is_visible_image(each, path))
    if not found:
        raise UserError(f"The folder {path} holds no images.")
    return found


def _printable(path: str | Path) -> str:
    # file names may have bytes that are not UTF-8; tables and JSON may not
    return os.fsencode(path).decode("utf-8", "backslashreplace")
