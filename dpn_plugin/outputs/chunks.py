"""Stored arrays, in chunks of bounded size."""

import mmap
from collections.abc import Callable, Iterator

import numpy as np
import torch
from torch import Tensor

#: Measures in float64 take about ten times a chunk: small enough for 2 GiB, large enough for speed.
CHUNK_BYTES = 16 * 2**20


def chunks(array: np.ndarray, chunk_bytes: int = CHUNK_BYTES) -> Iterator[Tensor]:
    """
    Return copies of consecutive rows, in order.

    :param array: of shape (N, ...), usually memory-mapped
    :param chunk_bytes: how much is in memory at a time; a single row may exceed it
    """
    rows = max(1, chunk_bytes * len(array) // max(1, array.nbytes))
    for start in range(0, len(array), rows):
        yield torch.from_numpy(np.array(array[start : start + rows]))
        release_pages(array)


def score_chunks(
    score: Callable[[Tensor], Tensor], array: np.ndarray, chunk_bytes: int = CHUNK_BYTES
) -> Tensor:
    """
    Return the scores of all N rows.

    :param score: gives B rows for B rows, e.g. a detector's ``predict_logits``
    :param array: of shape (N, ...), usually memory-mapped
    :param chunk_bytes: how much of ``array`` is in memory at a time
    """
    with torch.no_grad():
        return torch.cat([score(chunk).cpu() for chunk in chunks(array, chunk_bytes)])


def release_pages(array: np.ndarray | None) -> None:
    """Give back the pages of a mapped file, which count as resident memory until then."""
    base: object = array
    while isinstance(base, np.ndarray):
        base = base.base
    if isinstance(base, mmap.mmap):
        base.madvise(mmap.MADV_DONTNEED)
