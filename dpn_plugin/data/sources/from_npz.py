"""``npz:FILE``: images, labels and class names as NumPy arrays."""

import io
import os
import struct
import zipfile
from math import prod
from pathlib import Path

import numpy as np
import torch
from numpy.lib import format as npy
from torch import Tensor

from dpn_plugin.data.inputs import MappedImages
from dpn_plugin.data.samples import MAX_SAMPLES, Samples, check_memory
from dpn_plugin.data.sources import find_path, refuse_split
from dpn_plugin.data.storage import SMALL
from dpn_plugin.errors import UserError

_MAX_HEADER = 10_000  # NumPy's own limit, which it applies only after reading the whole header
_NUMPY_COMPRESSION = (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED)
# real images do not compress this well, but a malicious zip of kilobytes can expand to gigabytes
_MAX_COMPRESSION_RATIO = 200
#: what precedes a member of a zip file: its last two fields are lengths of what follows
_LOCAL_HEADER = "<4s5H3I2H"
# below this size an array may compress to any ratio
_ALWAYS_ACCEPTED = 1 << 26


def load(
    argument: str, *, split: str | None, root: Path, base: str | Path | None = None
) -> Samples:
    """
    Return the samples of an ``.npz`` file; large images that are not compressed stay there.

    It has the arrays ``images`` (``uint8`` of shape (N, H, W) or (N, H, W, C) with 1 or 3
    channels), ``labels`` (integers of shape (N,); left out: no labels) and ``classes`` (text, the
    name of each label; may be left out).

    :param argument: path of the file
    :param split: not allowed: a file has no splits
    :param root: folder of downloaded data sets
    :param base: where relative paths start; then ``root``
    :raises UserError: if the file is not as described, or declares more than the memory holds
    """
    source = f"npz:{argument}"
    refuse_split(source, split)
    path = find_path("npz", argument, root, base)
    if not path.is_file():  # reading a named pipe would block
        raise UserError(f"{path} is not a file.")
    try:
        _check_headers(path)
        with np.load(path, allow_pickle=False) as arrays:
            if "images" not in arrays:
                raise UserError(f"{path} has no array 'images', only {sorted(arrays)}.")
            images = _mapped(path) or _images(path, arrays["images"])
            labels = _labels(path, arrays.get("labels"), len(images))
            names = arrays.get("classes", np.array([], dtype=str))
    except UserError:
        raise
    # a damaged file makes zipfile and NumPy raise all kinds of errors, TokenError among others
    except Exception as error:
        raise UserError(f"{path} is damaged or is not an .npz file: {error}") from error
    return Samples(images, labels, source, _classes(path, names, labels))


def _check_headers(path: Path) -> None:
    """Check the size and type that every array declares, before any of them is decompressed."""
    declared = 0
    with zipfile.ZipFile(path) as archive:
        # all members: NumPy finds an array with or without the ending .npy
        for member in archive.infolist():
            declared += _declared_size(path, archive, member)
    check_memory(declared, str(path))


def _declared_size(path: Path, archive: zipfile.ZipFile, member: zipfile.ZipInfo) -> int:
    if member.compress_type not in _NUMPY_COMPRESSION:
        raise UserError(f"{path}: {member.filename} is packed in a way that NumPy does not use.")
    with archive.open(member) as stream:
        head = stream.read(_MAX_HEADER + 12)
    if not head.startswith(npy.MAGIC_PREFIX):
        return 0  # not an array, so it is never read
    shape, _, dtype = _read_header(io.BytesIO(head))
    if dtype.hasobject:
        raise UserError(f"{path}: {member.filename} holds Python objects, which are not read.")
    if any(not 0 <= length <= MAX_SAMPLES for length in shape):
        raise UserError(f"{path}: {member.filename} cannot have the shape {shape}.")
    size = dtype.itemsize * prod(shape)
    if size > max(_ALWAYS_ACCEPTED, _MAX_COMPRESSION_RATIO * member.compress_size):
        raise UserError(
            f"{path}: {member.filename} declares {size / 2**30:,.1f} GiB, more than "
            f"{_MAX_COMPRESSION_RATIO} times what the file holds of it."
        )
    return size


def _read_header(stream: io.BytesIO) -> tuple[tuple[int, ...], bool, np.dtype]:
    """Return shape, whether the first index changes fastest, and type."""
    major, _ = npy.read_magic(stream)
    read = npy.read_array_header_1_0 if major == 1 else npy.read_array_header_2_0
    return read(stream)


def _mapped(path: Path) -> MappedImages | None:
    """Return large images that are not compressed without reading them, otherwise ``None``."""
    with zipfile.ZipFile(path) as archive, path.open("rb") as file:
        member = _images_member(archive)
        if member.compress_type != zipfile.ZIP_STORED or member.file_size <= SMALL:
            return None
        file.seek(member.header_offset)
        fields = struct.unpack(_LOCAL_HEADER, file.read(struct.calcsize(_LOCAL_HEADER)))
        file.seek(fields[-2] + fields[-1], os.SEEK_CUR)  # the name and what follows it
        start = file.tell()
        stream = io.BytesIO(file.read(_MAX_HEADER + 12))
    shape, fortran, dtype = _read_header(stream)
    offset = start + stream.tell()
    if fortran or offset + dtype.itemsize * prod(shape) > start + member.file_size:
        return None  # NumPy reads it, or says what is wrong
    channels = _check_images(path, dtype, shape)
    image_shape = (channels, shape[1], shape[2])
    return MappedImages(
        shape[0], image_shape, path=path, offset=offset, channels_last=len(shape) == 4
    )


def _images_member(archive: zipfile.ZipFile) -> zipfile.ZipInfo:
    names = archive.namelist()
    # the same choice as NumPy's, which looks for the bare name first
    return archive.getinfo("images" if "images" in names else "images.npy")


def _images(path: Path, images: np.ndarray) -> Tensor:
    _check_images(path, images.dtype, images.shape)
    tensor = torch.from_numpy(images)
    return tensor.permute(0, 3, 1, 2).contiguous() if images.ndim == 4 else tensor[:, None]


def _check_images(path: Path, dtype: np.dtype, shape: tuple[int, ...]) -> int:
    """Return the number of channels."""
    colour = len(shape) == 4 and shape[3] in (1, 3)
    if dtype != np.uint8 or not (len(shape) == 3 or colour) or 0 in shape[1:]:
        raise UserError(
            f"{path}: images must be uint8 of shape (N, H, W), (N, H, W, 1) or (N, H, W, 3), not "
            f"{dtype} of shape {shape}."
        )
    return shape[3] if colour else 1


def _labels(path: Path, labels: np.ndarray | None, count: int) -> Tensor:
    if labels is None:
        return torch.full((count,), -1)
    if labels.dtype.kind not in "iu" or labels.shape != (count,):
        raise UserError(
            f"{path}: labels must be integers of shape ({count},), one for each image, not "
            f"{labels.dtype} of shape {labels.shape}."
        )
    if labels.dtype == np.uint64 and labels.max(initial=0) > np.iinfo(np.int64).max:
        raise UserError(f"{path}: labels must be below 2^63, not {labels.max()}.")
    return torch.from_numpy(labels.astype(np.int64))


def _classes(path: Path, names: np.ndarray, labels: Tensor) -> tuple[str, ...]:
    if not names.size:
        return ()
    highest = int(labels.max()) if len(labels) else -1
    if names.dtype.kind != "U" or names.ndim != 1 or len(names) <= highest:
        raise UserError(
            f"{path}: classes must be text, one name for each label up to {highest}, not "
            f"{names.dtype} of shape {names.shape}."
        )
    return tuple(names.tolist())
