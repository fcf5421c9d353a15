"""Inputs of every kind give the same rows, and subsets of images in files copy no pixels."""

import pickle

import numpy as np
import pytest
import torch

from dpn_plugin.data import (
    JoinedImages,
    MappedImages,
    Samples,
    StreamedImages,
    channel_statistics,
    fingerprint,
    join,
)
from dpn_plugin.errors import UserError

SHAPE = (3, 5, 4)


@pytest.fixture
def pixels():
    generator = torch.Generator().manual_seed(0)
    return torch.randint(0, 256, (30, *SHAPE), dtype=torch.uint8, generator=generator)


def streamed(pixels):
    return StreamedImages(len(pixels), SHAPE, decode=pixels.__getitem__)


def mapped(pixels, path, offset=0):
    path.write_bytes(bytes(offset) + pixels.numpy().tobytes())
    return MappedImages(len(pixels), SHAPE, path=path, offset=offset)


def joined(pixels, path):
    return JoinedImages(
        len(pixels), SHAPE, parts=(pixels[:7], streamed(pixels[7:11]), mapped(pixels[11:], path))
    )


@pytest.fixture(params=["streamed", "mapped", "joined"])
def inputs(request, pixels, tmp_path):
    if request.param == "streamed":
        return streamed(pixels)
    return (mapped if request.param == "mapped" else joined)(pixels, tmp_path / "pixels")


def as_samples(inputs):
    return Samples(inputs, torch.arange(len(inputs)) % 3, "images")


def test_rows_are_those_of_the_tensor(inputs, pixels):
    positions = torch.tensor([29, 0, 7, 7, 10, 11])
    assert torch.equal(inputs.rows(positions), pixels[positions])
    assert (inputs.shape, inputs.dtype, inputs.ndim) == (pixels.shape, pixels.dtype, pixels.ndim)


def test_subsets_of_subsets_hold_positions_and_no_pixels(inputs, pixels):
    some = torch.tensor([20, 3, 14, 8])
    part = as_samples(inputs).subset(some).subset(torch.tensor([2, 0]))
    assert torch.equal(part.all_rows(), pixels[[14, 20]])
    assert part.inputs.positions.tolist() == [14, 20]
    assert part.labels.tolist() == [14 % 3, 20 % 3]


def test_fingerprint_and_statistics_do_not_depend_on_where_pixels_are(inputs, pixels):
    assert fingerprint(as_samples(inputs)) == fingerprint(as_samples(pixels))
    assert channel_statistics(as_samples(inputs)) == channel_statistics(as_samples(pixels))


def test_mapped_images_may_begin_anywhere_with_channels_last(pixels, tmp_path):
    path = tmp_path / "pixels"
    path.write_bytes(b"header" + pixels.permute(0, 2, 3, 1).contiguous().numpy().tobytes())
    found = MappedImages(30, SHAPE, path=path, offset=6, channels_last=True)
    assert torch.equal(found.rows(torch.arange(30)), pixels)


def test_mapped_images_open_their_file_again_in_another_process(pixels, tmp_path):
    found = mapped(pixels, tmp_path / "pixels")
    found.rows(torch.arange(3))
    assert torch.equal(pickle.loads(pickle.dumps(found)).rows(torch.arange(30)), pixels)


def test_a_mapped_file_that_is_too_short_is_refused(pixels, tmp_path):
    found = mapped(pixels, tmp_path / "pixels")
    found.path.write_bytes(found.path.read_bytes()[:-1])
    with pytest.raises(UserError, match="shorter than the 30 images"):
        found.rows(torch.arange(1))


def test_joined_tensors_are_a_tensor_and_others_a_view(pixels, tmp_path):
    assert torch.equal(join([pixels[:4], pixels[4:]]), pixels)
    view = join([pixels[:4], mapped(pixels[4:], tmp_path / "pixels")])
    assert isinstance(view, JoinedImages)
    assert np.array_equal(view.rows(torch.arange(30)), pixels)
