"""Where the images of a data set are kept: in memory, in a shared cache, or in their files."""

from collections.abc import Iterator
from dataclasses import dataclass, replace
from math import prod
from pathlib import Path
from typing import TypeAlias

import numpy as np
import torch
from torch import Tensor

from dpn_plugin._files import locked
from dpn_plugin.data.decoding import decoded_batches, default_workers
from dpn_plugin.data.fitted import FittedImages
from dpn_plugin.data.hash_index import HashIndex
from dpn_plugin.data.hashes import hash_rows, no_hashes
from dpn_plugin.data.image_cache import HashedChunk, ImageCache, all_positions, filling_lock
from dpn_plugin.data.inputs import Inputs, MappedImages, StoredImages
from dpn_plugin.data.lazy_images import ImageDecoder
from dpn_plugin.data.origins import ArchiveOrigin, DataChanged
from dpn_plugin.data.samples import Samples, check_memory, physical_memory
from dpn_plugin.errors import UserError

Decoder: TypeAlias = ImageDecoder | FittedImages

#: sets up to this size are held in memory, by every process: a file would save nothing
SMALL = 1 << 24
#: the share of the machine's memory that decoded images may take if nobody says
_MEMORY_SHARE = 4
_CHUNK_BYTES = 1 << 22
#: the hash of an image that cannot be read
_DAMAGED = 255


@dataclass(frozen=True)
class StorageOptions:
    """
    How images that do not simply lie in memory are kept and decoded.

    :param folder: of the cache; without one, sets that fit are decoded into memory
    :param memory: bytes that all decoded sets together may have; a quarter of the machine's memory
        if not given. Larger sets are decoded whenever they are used
    :param workers: processes that decode; one for each core, at most four, if not given
    """

    folder: Path | None = None
    memory: int | None = None
    workers: int | None = None


class ImageStore:
    """
    Decides for every data set where its images are kept, and reads each image once to hash it.

    :param options: what the user has asked for
    """

    def __init__(self, options: StorageOptions) -> None:
        self.cache = None if options.folder is None else ImageCache(options.folder)
        memory = options.memory
        self._room = physical_memory() // _MEMORY_SHARE if memory is None else memory
        self._workers = default_workers() if options.workers is None else options.workers

    def load(
        self, decoder: Decoder, name: str, skip_damaged: bool = False
    ) -> tuple[Inputs, Tensor]:
        """
        Return the images that ``decoder`` decodes, and the positions of those that can be read.

        :param decoder: of the chosen images
        :param name: the name of the data in messages
        :param skip_damaged: leave out images that cannot be read
        :raises UserError: if an image cannot be read, or no image is left
        """
        inputs, kept = self._place(_Reading(decoder, name, self._workers, skip_damaged))
        if not len(kept):
            raise UserError(f"{name} has no image that can be read.")
        return inputs, kept

    def keep(self, samples: Samples) -> Samples:
        """Return samples with images in the cache if they are large, with hashes if in a file."""
        inputs = samples.inputs
        if isinstance(inputs, MappedImages):
            return replace(samples, inputs=self._hashed(inputs, samples.name))
        if isinstance(inputs, StoredImages) or self.cache is None or inputs.ndim != 4:
            return samples
        if inputs.nbytes <= SMALL or not self._take(inputs.nbytes):
            return samples
        return replace(samples, inputs=self.cache.keep(inputs))

    def _take(self, size: int) -> bool:
        """Return whether a set fits beside those before it, and count it if so."""
        fits = size <= self._room
        self._room -= size if fits else 0
        return fits

    def _place(self, reading: "_Reading") -> tuple[Inputs, Tensor]:
        """Return the images that can be read, and their positions."""
        if reading.size <= SMALL or (self.cache is None and self._take(reading.size)):
            return reading.in_memory()
        if self.cache is not None and self._take(reading.size):
            return self._cached(reading, self.cache)
        hashes = reading.hashes(None if self.cache is None else self.cache.index)
        kept = _readable(hashes)
        decoder = reading.decoder if len(kept) == len(hashes) else reading.decoder.subset(kept)
        return decoder.streamed(self._workers, hashes[kept.numpy()]), kept

    def _cached(self, reading: "_Reading", cache: ImageCache) -> tuple[Inputs, Tensor]:
        shape, description = reading.decoder.image_shape, reading.decoder.description
        states = reading.decoder.states()
        with locked(filling_lock(cache.folder, states, description)):
            hashes = cache.index.find(states, description)
            kept = _readable(hashes)
            if hashes.any(axis=1).all():
                reading.check(hashes)
                found = cache.find(hashes[kept.numpy()], shape)
                if found is not None:
                    return found, kept
            found, hashes = self._fill(reading, cache)
            cache.index.add(states, description, hashes)
            return found, _readable(hashes)

    @staticmethod
    def _fill(reading: "_Reading", cache: ImageCache) -> tuple[MappedImages, np.ndarray]:
        every = no_hashes(len(reading.decoder.indices))

        def readable() -> Iterator[HashedChunk]:
            start = 0
            for hashes, pixels in reading.chunks():
                every[start : start + len(hashes)] = hashes
                start += len(hashes)
                kept = _readable(hashes)
                yield hashes[kept.numpy()], pixels[kept] if len(kept) < len(pixels) else pixels

        return cache.write(readable(), len(every), reading.decoder.image_shape), every

    def _hashed(self, inputs: MappedImages, name: str) -> MappedImages:
        """Return images of a mapped file with their hashes, which the index may know."""
        if inputs.hashes is not None:
            return inputs
        positions = torch.arange(inputs.count) if inputs.positions is None else inputs.positions
        states = ArchiveOrigin((str(inputs.path),)).states(positions.tolist())
        index = None if self.cache is None else self.cache.index
        description = f"mapped {inputs.image_shape}"
        hashes = no_hashes(len(states)) if index is None else index.find(states, description)
        if not hashes.any(axis=1).all():
            size = max(1, _CHUNK_BYTES // prod(inputs.image_shape))
            for rows in all_positions(len(inputs), size):
                hashes[rows.numpy()] = hash_rows(inputs.rows(rows))
            if index is not None:
                index.add(states, description, hashes)
        return replace(inputs, hashes=hashes)


class _Reading:
    """The reading of all images of a data set, by worker processes."""

    def __init__(self, decoder: Decoder, name: str, workers: int, skip_damaged: bool) -> None:
        self.decoder, self.name, self.workers = decoder, name, workers
        self.skip_damaged = skip_damaged
        self.size = len(decoder.indices) * prod(decoder.image_shape)

    def in_memory(self) -> tuple[Tensor, Tensor]:
        """Return the images that can be read, in memory, and their positions."""
        check_memory(self.size, self.name)
        shape = (len(self.decoder.indices), *self.decoder.image_shape)
        inputs, hashes, start = torch.empty(shape, dtype=torch.uint8), [], 0
        for part, pixels in self.chunks():
            inputs[start : start + len(pixels)] = pixels
            hashes.append(part)
            start += len(pixels)
        kept = _readable(np.concatenate(hashes))
        return (inputs if len(kept) == len(inputs) else inputs[kept]), kept

    def hashes(self, index: HashIndex | None) -> np.ndarray:
        """Return the hash of each image; those that the index does not know are read."""
        states, description = self.decoder.states(), self.decoder.description
        found = no_hashes(len(states)) if index is None else index.find(states, description)
        unknown = torch.from_numpy(np.flatnonzero(~found.any(axis=1)))
        if len(unknown):
            start = 0
            for part, _ in self.chunks(unknown, pixels=False):
                found[unknown[start : start + len(part)].numpy()] = part
                start += len(part)
            if index is not None:
                index.add(states, description, found)
        self.check(found)
        return found

    def chunks(self, positions: Tensor | None = None, pixels: bool = True) -> Iterator[HashedChunk]:
        """Yield hashes and pixels of the images, of all of them or of some."""
        wanted = torch.arange(len(self.decoder.indices)) if positions is None else positions
        rows = max(1, _CHUNK_BYTES // prod(self.decoder.image_shape))
        batches = wanted.split(rows)
        fetch = _HashedImages(self.decoder, self.skip_damaged, pixels)
        workers = min(self.workers, len(batches) - 1)
        for _, (hashes, found) in decoded_batches(fetch, batches, workers, self.name):
            yield hashes.numpy(), found

    def check(self, hashes: np.ndarray) -> None:
        """Raise for the first image that could not be read before and has not changed since."""
        damaged = np.flatnonzero((hashes == _DAMAGED).all(axis=1))
        if len(damaged) and not self.skip_damaged:
            self.decoder(int(damaged[0]))  # raises, naming the file


@dataclass(frozen=True)
class _HashedImages:
    """Returns hashes and pixels of images; called in worker processes."""

    decoder: Decoder
    skip_damaged: bool
    pixels: bool

    def __call__(self, positions: Tensor) -> tuple[Tensor, Tensor]:
        found = torch.zeros((len(positions), *self.decoder.image_shape), dtype=torch.uint8)
        damaged = []
        for row, position in enumerate(positions.tolist()):
            try:
                found[row] = self.decoder(position)
            except UserError as error:
                if not self.skip_damaged or isinstance(error, DataChanged):
                    raise
                damaged.append(row)
        hashes = torch.from_numpy(hash_rows(found).copy())
        hashes[damaged] = _DAMAGED
        return hashes, found if self.pixels else found[:0]


def _readable(hashes: np.ndarray) -> Tensor:
    """Return the positions of the images that can be read."""
    return torch.from_numpy(np.flatnonzero(~(hashes == _DAMAGED).all(axis=1)))
