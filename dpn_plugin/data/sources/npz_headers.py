"""What an ``.npz`` file says about its arrays, before any of them is unpacked."""

import io
import zipfile
from math import prod
from pathlib import Path

import numpy as np
from numpy.lib import format as npy

from dpn_plugin.data.room import MOST_SAMPLES, check_room
from dpn_plugin.errors import UserError

__all__ = ["check_headers"]

_MOST_HEADER = 10_000  # NumPy's own limit, which it applies after reading all of a header
_WRITTEN_BY_NUMPY = (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED)
# images that shrink so much hold nothing, and a few kilobytes of zip can become gigabytes
_MOST_SHRUNK = 200
_ALWAYS_TAKEN = 1 << 26


def check_headers(path: Path) -> None:
    """
    :param path: an ``.npz`` file
    :raises UserError: if an array holds Python objects, or is larger than the memory or than the
        file can hold
    :raises Exception: whatever ``zipfile`` and NumPy raise for a damaged file
    """
    declared = 0
    with zipfile.ZipFile(path) as archive:
        # all of them: NumPy finds an array with or without the ending of its name
        for member in archive.infolist():
            declared += _declared(path, archive, member)
    check_room(declared, str(path))


def _declared(path: Path, archive: zipfile.ZipFile, member: zipfile.ZipInfo) -> int:
    if member.compress_type not in _WRITTEN_BY_NUMPY:
        raise UserError(f"{path}: {member.filename} is packed in a way that NumPy does not use.")
    with archive.open(member) as stream:
        head = stream.read(_MOST_HEADER + 12)
    if not head.startswith(npy.MAGIC_PREFIX):
        return 0  # no array, so nothing that is read
    shape, dtype = _header(head)
    if dtype.hasobject:
        raise UserError(f"{path}: {member.filename} holds Python objects, which are not read.")
    if any(not 0 <= length <= MOST_SAMPLES for length in shape):
        raise UserError(f"{path}: {member.filename} cannot have the shape {shape}.")
    size = dtype.itemsize * prod(shape)
    if size > max(_ALWAYS_TAKEN, _MOST_SHRUNK * member.compress_size):
        raise UserError(
            f"{path}: {member.filename} declares {size / 2**30:,.1f} GiB, more than "
            f"{_MOST_SHRUNK} times what the file holds of it."
        )
    return size


def _header(head: bytes) -> tuple[tuple[int, ...], np.dtype]:
    stream = io.BytesIO(head)
    major, _ = npy.read_magic(stream)
    read = npy.read_array_header_1_0 if major == 1 else npy.read_array_header_2_0
    shape, _, dtype = read(stream)
    return shape, dtype
