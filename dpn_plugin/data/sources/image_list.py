"""Lists of image files: a path and a label in every line, as OpenOOD writes them."""

import os
from pathlib import Path

import torch
from pytorch_ood.dataset.img import ImageListDataset

from dpn_plugin.data.image_files import images_of_files
from dpn_plugin.data.lazy_images import LazyImages
from dpn_plugin.errors import MissingData, UserError


def images_of_list(path: Path, root: Path, source: str) -> LazyImages:
    """
    Return the images of a list.

    :param path: the list
    :param root: the folder that its paths start from
    :param source: its name in messages
    :raises MissingData: if list or folder are missing
    :raises UserError: if the list cannot be read, is empty, or leads out of the folder
    """
    try:
        listed = ImageListDataset(root=str(root), imglist_path=str(path))
    except (OSError, RuntimeError) as error:
        raise MissingData(f"{source}: {error}") from error
    except (ValueError, OverflowError) as error:
        raise UserError(f"{source}: {path} is not a list of images: {error}") from error
    if not listed.files:
        raise UserError(f"{source}: {path} names no images.")
    inside = os.path.join(os.path.abspath(root), "")
    for file in listed.files:
        # by the text: links inside of the folder may lead to another disk
        if not os.path.abspath(file).startswith(inside):
            raise UserError(f"{source}: {path} names {file}, which is not in {root}.")
    try:
        labels = torch.tensor(listed.labels, dtype=torch.int64)
    except (OverflowError, RuntimeError, ValueError) as error:
        raise UserError(f"{source}: {path} has a label that is too large: {error}") from error
    return images_of_files(listed.files, source, labels)
