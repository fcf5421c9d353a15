"""Hashes of data: one for each row, and one for a whole data set."""

import hashlib
import os
from collections import deque
from concurrent.futures import Future, ThreadPoolExecutor

import numpy as np
from torch import Tensor

from dpn_plugin.data.inputs import Inputs, JoinedImages, chunks
from dpn_plugin.data.samples import Samples

#: bytes of the hash of a row
HASH_SIZE = 16
_THREADS = 4


def fingerprint(samples: Samples) -> str:
    """
    Return the SHA-256 of the type, shape, rows and labels of a data set, in hexadecimal.

    It is a hash of the hashes of its rows, the same wherever the rows are kept.
    """
    digest = hashlib.sha256()
    digest.update(f"{samples.inputs.dtype} {tuple(samples.inputs.shape)};".encode())
    digest.update(np.ascontiguousarray(row_hashes(samples.inputs)).data)
    digest.update(samples.labels.numpy().astype("<i8").tobytes())
    return digest.hexdigest()


def row_hashes(inputs: Inputs) -> np.ndarray:
    """Return 16 bytes for each row, the same for equal ones, as ``uint8`` of shape (N, 16)."""
    if not isinstance(inputs, Tensor) and inputs.hashes is not None:
        return inputs.hashes
    found, start = no_hashes(inputs.shape[0]), 0
    if isinstance(inputs, JoinedImages):
        found = np.concatenate([row_hashes(part) for part in inputs.parts])
        return found if inputs.positions is None else found[inputs.positions.numpy()]
    for chunk in chunks(inputs):
        found[start : start + len(chunk)] = hash_rows(chunk)
        start += len(chunk)
    return found


def hash_rows(rows: Tensor) -> np.ndarray:
    """Return the hash of each row of a tensor in memory, as ``uint8`` of shape (N, 16)."""
    array = np.ascontiguousarray(rows.detach().cpu().numpy())
    flat = array.reshape(len(rows), -1).view(np.uint8)
    digests = b"".join(hashlib.blake2b(row.data, digest_size=HASH_SIZE).digest() for row in flat)
    return np.frombuffer(digests, np.uint8).reshape(-1, HASH_SIZE)


def hash_all(inputs: Inputs) -> np.ndarray:
    """Return the hash of each row, read anew from where the rows are, by several threads."""
    found, start = no_hashes(inputs.shape[0]), 0
    waiting: deque[Future[np.ndarray]] = deque()
    with ThreadPoolExecutor(min(_THREADS, os.cpu_count() or 1)) as pool:
        for chunk in chunks(inputs):
            waiting.append(pool.submit(hash_rows, chunk))
            while len(waiting) > _THREADS:
                start = _take(waiting, found, start)
        while waiting:
            start = _take(waiting, found, start)
    return found


def _take(waiting: "deque[Future[np.ndarray]]", found: np.ndarray, start: int) -> int:
    part = waiting.popleft().result()
    found[start : start + len(part)] = part
    return start + len(part)


def short_hashes(samples: Samples) -> np.ndarray:
    """Return 64 bits for each sample, the same for equal ones."""
    # 64 bits: among a million images against a million the probability of a false match is 5e-8
    return np.ascontiguousarray(row_hashes(samples.inputs)[:, :8]).view(np.uint64)[:, 0]


def content_hash(hashes: np.ndarray, image_shape: tuple[int, ...]) -> str:
    """
    Return a hash of images, by which a file of them is found.

    :param hashes: of each image
    :param image_shape: channels, height and width
    """
    digest = hashlib.sha256(f"{tuple(image_shape)};".encode())
    digest.update(np.ascontiguousarray(hashes).data)
    return digest.hexdigest()[:32]


def no_hashes(count: int) -> np.ndarray:
    """Return room for the hashes of so many rows: zeros, which no row has."""
    return np.zeros((count, HASH_SIZE), np.uint8)
