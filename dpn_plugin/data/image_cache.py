"""A folder of decoded images and their hashes, which all processes of a machine share."""

from collections.abc import Callable, Iterable, Iterator
from pathlib import Path

import numpy as np
import torch
from torch import Tensor

from dpn_plugin._files import locked, writing_into
from dpn_plugin.data.hash_index import HashIndex
from dpn_plugin.data.hashes import content_hash, hash_all, no_hashes
from dpn_plugin.data.inputs import MappedImages, chunks
from dpn_plugin.errors import UserError

#: what a chunk of images gives: their hashes and their pixels
HashedChunk = tuple[np.ndarray, Tensor]


class ImageCache:
    """
    Decoded images, one file of bytes for each data set, named by its content.

    A file is written whole or not at all. Before it is used, its pixels are compared with the
    hashes that name it; a damaged file is written again.

    :param folder: where the files are
    """

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.index = HashIndex(folder / "index")

    def find(self, hashes: np.ndarray, image_shape: tuple[int, int, int]) -> MappedImages | None:
        """
        Return images that were written before, or ``None``.

        :param hashes: of each image
        :param image_shape: channels, height and width
        """
        path = self.folder / _name(hashes, image_shape)
        if not path.is_file():
            return None
        found = MappedImages(len(hashes), image_shape, hashes=hashes, path=path)
        try:
            is_intact = np.array_equal(hash_all(found), hashes)
        except UserError:  # it is too short
            return None
        return found if is_intact else None

    def write(
        self, found: Iterable[HashedChunk], most: int, image_shape: tuple[int, int, int]
    ) -> MappedImages:
        """
        Write images and return them with their hashes.

        :param found: hashes and pixels, a few images at a time
        :param most: the largest number of images
        :param image_shape: channels, height and width
        :raises CannotWrite: if the disk is full
        """
        # one array: many small ones between large chunks would keep the memory of the chunks
        hashes, count = no_hashes(most), 0
        with writing_into(self.folder) as file:
            with file.path.open("wb") as stream:
                for part, pixels in found:
                    stream.write(np.ascontiguousarray(pixels.numpy()).data)
                    hashes[count : count + len(part)] = part
                    count += len(part)
            hashes = hashes[:count]
            file.name = _name(hashes, image_shape)
        path = self.folder / file.name
        return MappedImages(len(hashes), image_shape, hashes=hashes, path=path)

    def keep(self, inputs: Tensor) -> MappedImages:
        """Return images in memory as images in a file, which is written if it is not there."""
        hashes, shape = hash_all(inputs), (inputs.shape[1], inputs.shape[2], inputs.shape[3])
        return self.find_or_write(hashes, shape, lambda: _parts(inputs, hashes))

    def find_or_write(
        self,
        hashes: np.ndarray,
        image_shape: tuple[int, int, int],
        read: Callable[[], Iterable[HashedChunk]],
    ) -> MappedImages:
        """
        Return the images with these hashes; one process writes them, others wait for it.

        :param hashes: of each image
        :param image_shape: channels, height and width
        :param read: gives the images if they are not there
        """
        with locked(self.folder / f".{_name(hashes, image_shape)}.lock"):
            found = self.find(hashes, image_shape)
            return found or self.write(read(), len(hashes), image_shape)


def _name(hashes: np.ndarray, image_shape: tuple[int, int, int]) -> str:
    return f"{content_hash(hashes, image_shape)}.u8"


def _parts(inputs: Tensor, hashes: np.ndarray) -> Iterator[HashedChunk]:
    start = 0
    for chunk in chunks(inputs):
        yield hashes[start : start + len(chunk)], chunk
        start += len(chunk)


def filling_lock(folder: Path, states: Iterable[bytes], description: str) -> Path:
    """Return the lock of the process that reads images for the first time."""
    digest = content_hash(np.frombuffer(b"\0".join(states) or b"\0", np.uint8), (len(description),))
    return folder / f".{digest}.filling.lock"


def all_positions(count: int, size: int) -> Iterator[Tensor]:
    """Yield all positions, so many at a time."""
    for start in range(0, count, size):
        yield torch.arange(start, min(start + size, count))
