"""The kinds of inputs that samples may have: in memory, memory-mapped, or decoded on demand."""

import mmap
import os
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from math import prod
from pathlib import Path
from typing import Any, Self, TypeAlias

import numpy as np
import torch
from torch import Tensor

from dpn_plugin.errors import UserError

#: pages of a mapped file that a process has touched count as its memory; it gives them back after
_RELEASE_AFTER = 1 << 26
_CHUNK_BYTES = 1 << 22


@dataclass(frozen=True, eq=False)
class StoredImages(ABC):
    """
    Images that are not in memory: a view of some images of a file or folder, in any order.

    It has shape, type and length of a ``uint8`` tensor, :math:`N \\times C \\times H \\times W`.
    Pixels are read with :meth:`rows`; a subset holds positions, not pixels.

    :param count: number of images in the file or folder
    :param image_shape: channels, height and width
    :param positions: those of the images of this view, ``int64``; all of them if ``None``
    :param hashes: the hash of each image of this view, where they are known
    """

    count: int
    image_shape: tuple[int, int, int]
    positions: Tensor | None = None
    hashes: np.ndarray | None = None

    dtype = torch.uint8
    ndim = 4
    #: worker processes that decode batches
    workers = 0

    @property
    def shape(self) -> torch.Size:
        """Number of images, channels, height and width."""
        return torch.Size((len(self), *self.image_shape))

    def __len__(self) -> int:
        return self.count if self.positions is None else len(self.positions)

    def subset(self, positions: Tensor) -> Self:
        """Return a view of the images at these positions of this view."""
        hashes = None if self.hashes is None else self.hashes[positions.numpy()]
        return replace(self, positions=self.origin(positions), hashes=hashes)

    def rows(self, positions: Tensor) -> Tensor:
        """Return the images at these positions of this view, in memory."""
        return self.read(self.origin(positions))

    def origin(self, positions: Tensor) -> Tensor:
        """Return the positions in the file or folder that positions of this view refer to."""
        return positions if self.positions is None else self.positions[positions]

    @abstractmethod
    def read(self, positions: Tensor) -> Tensor:
        """Return the images at these positions of the file or folder, in memory."""


@dataclass(frozen=True, eq=False)
class MappedImages(StoredImages):
    """
    Images in a memory-mapped file of bytes, which all processes of a machine share.

    :param path: the file
    :param offset: where its pixels begin
    :param channels_last: the channels of a pixel lie together in the file
    """

    path: Path = Path()
    offset: int = 0
    channels_last: bool = False
    _file: "_MappedFile | None" = field(default=None, repr=False)

    def __post_init__(self) -> None:
        if self._file is None:  # views of one file share its map
            channels, height, width = self.image_shape
            shape = (height, width, channels) if self.channels_last else self.image_shape
            file = _MappedFile(self.path, self.offset, (self.count, *shape))
            object.__setattr__(self, "_file", file)

    def read(self, positions: Tensor) -> Tensor:
        """Return the images at these positions of the file, in memory."""
        assert self._file is not None
        found = torch.from_numpy(self._file.rows(positions.numpy()))
        return found.permute(0, 3, 1, 2).contiguous() if self.channels_last else found


@dataclass(frozen=True, eq=False)
class StreamedImages(StoredImages):
    """
    Images that are decoded whenever they are needed.

    :param decode: returns the image at a position, :math:`C \\times H \\times W` bytes; it may be
        called in worker processes
    :param workers: worker processes that decode batches; 0 decodes in this process
    """

    decode: Callable[[int], Tensor] | None = None
    workers: int = 0

    def read(self, positions: Tensor) -> Tensor:
        """Return the images at these positions of the source, decoded in this process."""
        assert self.decode is not None
        found = torch.empty((len(positions), *self.image_shape), dtype=torch.uint8)
        for row, position in enumerate(positions.tolist()):
            found[row] = self.decode(position)
        return found


@dataclass(frozen=True, eq=False)
class JoinedImages(StoredImages):
    """
    Several sets of images one after the other, without a copy.

    :param parts: the sets, in order
    """

    parts: tuple["Tensor | StoredImages", ...] = ()

    @property
    def workers(self) -> int:  # type: ignore[override]
        """Worker processes that decode batches, those of the part that wants the most."""
        return max(workers_of(part) for part in self.parts)

    def read(self, positions: Tensor) -> Tensor:
        """Return the images at these positions of all parts together, in memory."""
        found = torch.empty((len(positions), *self.image_shape), dtype=torch.uint8)
        start = 0
        for part in self.parts:
            here = (positions >= start) & (positions < start + len(part))
            if here.any():
                found[here] = rows_of(part, positions[here] - start)
            start += len(part)
        return found


Inputs: TypeAlias = Tensor | StoredImages
"""What :attr:`Samples.inputs` may be."""


def rows_of(inputs: Inputs, positions: Tensor) -> Tensor:
    """Return the inputs at these positions, in memory."""
    if not isinstance(inputs, Tensor):
        return inputs.rows(positions)
    # index_select takes a third of the time, but loses the layout of images in memory, by which
    # torch chooses how to convolve them: results would differ in the last digits
    return inputs.index_select(0, positions) if inputs.ndim == 2 else inputs[positions]


def subset_of(inputs: Inputs, positions: Tensor) -> Inputs:
    """Return the inputs at these positions: a copy of a tensor, a view of anything else."""
    return inputs[positions] if isinstance(inputs, Tensor) else inputs.subset(positions)


def workers_of(inputs: Inputs) -> int:
    """Return how many worker processes decode batches of these inputs."""
    return 0 if isinstance(inputs, Tensor) else inputs.workers


def join(parts: Sequence[Inputs]) -> Inputs:
    """Return inputs of one shape one after the other: a tensor of tensors, otherwise a view."""
    tensors = [part for part in parts if isinstance(part, Tensor)]
    if len(tensors) == len(parts):
        return torch.cat(tensors)
    if len(parts) == 1:
        return parts[0]
    channels, height, width = parts[0].shape[1:]
    count = sum(len(part) for part in parts)
    return JoinedImages(count, (channels, height, width), parts=tuple(parts))


def chunks(inputs: Inputs, rows: int | None = None) -> Iterator[Tensor]:
    """
    Yield all inputs in order, a few at a time.

    :param inputs: what to read
    :param rows: how many at a time; a few megabytes (at least one row) if not given
    """
    size = prod(inputs.shape[1:]) * inputs.dtype.itemsize
    rows = rows or max(1, _CHUNK_BYTES // max(1, size))
    if isinstance(inputs, Tensor):
        yield from inputs.split(rows)
        return
    for start in range(0, len(inputs), rows):
        yield inputs.rows(torch.arange(start, min(start + rows, len(inputs))))


class _MappedFile:
    """The rows of a file, which is mapped and never counts as more than a little memory."""

    def __init__(self, path: Path, offset: int, shape: tuple[int, ...]) -> None:
        self._path, self._offset, self._shape = path, offset, shape
        self._state: tuple[int, int] | None = None
        self._rows: np.ndarray | None = None
        self._touched = 0

    def __getstate__(self) -> dict[str, Any]:
        # another process opens the file itself, and finds out if it has changed
        return {**vars(self), "_rows": None, "_map": None, "_file": None}

    def rows(self, positions: np.ndarray) -> np.ndarray:
        """Return a copy of these rows."""
        if self._rows is None:
            self._rows = self._open()
        # reading beyond the end of a file that became shorter would end the process
        self._check(os.fstat(self._file.fileno()))
        found = self._rows[positions]
        self._touched += found.nbytes
        if self._touched > _RELEASE_AFTER and hasattr(mmap, "MADV_DONTNEED"):
            # the system keeps the pages in its cache; this process no longer counts them
            self._map.madvise(mmap.MADV_DONTNEED)
            self._touched = 0
        return found

    def _open(self) -> np.ndarray:
        try:
            self._file = self._path.open("rb")
            found = os.fstat(self._file.fileno())
            self._state = self._state or (found.st_size, found.st_mtime_ns)
            self._check(found)
            if found.st_size < self._offset + prod(self._shape):
                count = self._shape[0]
                raise UserError(f"{self._path} is shorter than the {count} images that it holds.")
            self._map = mmap.mmap(self._file.fileno(), 0, access=mmap.ACCESS_READ)
        except OSError as error:
            raise UserError(f"{self._path} cannot be read: {error.strerror}.") from error
        pixels = np.frombuffer(self._map, np.uint8, prod(self._shape), self._offset)
        return pixels.reshape(self._shape)

    def _check(self, found: os.stat_result) -> None:
        if (found.st_size, found.st_mtime_ns) != self._state:
            raise UserError(
                f"{self._path} was changed while it was in use. Start the same command again when "
                "the data is complete."
            )
