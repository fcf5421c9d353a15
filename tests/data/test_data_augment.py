from dataclasses import replace

import numpy as np
import pytest
import torch
from scipy import ndimage

from dpn_plugin.data import Augmentation
from dpn_plugin.errors import UserError

ALL_PARTS = Augmentation(shift=0.1, rotation=15.0, flip=True)
SHIFT_AND_FLIP = Augmentation(shift=0.05, flip=True)


def generator(seed=0):
    return torch.Generator().manual_seed(seed)


def test_the_same_generator_state_gives_the_same_images(images):
    first = ALL_PARTS(images.inputs, generator())
    assert torch.equal(first, ALL_PARTS(images.inputs, generator()))
    assert not torch.equal(first, ALL_PARTS(images.inputs, generator(1)))
    assert first.dtype == torch.uint8


def test_no_augmentation_changes_neither_images_nor_generator(images):
    source = generator()
    assert Augmentation()(images.inputs, source) is images.inputs
    assert torch.equal(source.get_state(), generator().get_state())


def test_flips_mirror_about_half_of_the_images(images):
    flipped = Augmentation(flip=True)(images.inputs, generator())
    same = (flipped == images.inputs).flatten(1).all(1)
    mirrored = (flipped == images.inputs.flip(3)).flatten(1).all(1)
    assert (same ^ mirrored).all()
    assert 15 < same.sum() < 45


@pytest.mark.parametrize(
    ("fill", "mode"), [("nearest", "edge"), ("reflect", "symmetric"), ("zero", "constant")]
)
def test_shifts_move_by_whole_pixels_up_to_the_limit_and_fill_from_outside(fill, mode, images):
    shifted = Augmentation(shift=0.25, fill=fill)(images.inputs, generator())
    padded = np.pad(images.inputs.numpy(), [(0, 0), (0, 0), (2, 2), (2, 2)], mode=mode)
    seen = set()
    for before, after in zip(padded, shifted.numpy(), strict=True):
        places = [
            (row, column)
            for row in range(5)
            for column in range(5)
            if np.array_equal(before[:, row : row + 8, column : column + 8], after)
        ]
        assert len(places) == 1
        seen.add(places[0])
    assert {row for row, _ in seen} == {column for _, column in seen} == {0, 1, 2, 3, 4}


@pytest.mark.parametrize("size", [(33, 33), (24, 40)])
def test_rotation_keeps_angles_in_images_of_any_shape(size):
    rows, columns = np.mgrid[: size[0], : size[1]].astype(np.float64)
    picture = np.exp(-((rows - size[0] / 2 - 3) ** 2 + (columns - size[1] / 2 - 6) ** 2) / 12)
    batch = torch.from_numpy(picture).float().expand(8, 1, *size)
    turned = Augmentation(rotation=30)(batch, generator()).numpy()[:, 0]
    draws = torch.rand((4, 8), generator=generator())[0].numpy()
    for image, draw in zip(turned, draws, strict=True):
        angle = (2 * draw - 1) * 30
        expected = ndimage.rotate(picture, angle, reshape=False, order=1, mode="nearest")
        assert abs(image - expected).max() < 1e-3


@pytest.mark.parametrize(
    ("fill", "mode"), [("nearest", "nearest"), ("reflect", "reflect"), ("zero", "grid-constant")]
)
def test_corners_of_rotated_images_are_filled_like_those_of_scipy(fill, mode):
    picture = np.random.default_rng(0).uniform(size=(16, 16))
    batch = torch.from_numpy(picture).expand(8, 1, 16, 16)
    turned = Augmentation(rotation=45, fill=fill)(batch, generator()).numpy()[:, 0]
    draws = torch.rand((4, 8), generator=generator())[0].numpy()
    for image, draw in zip(turned, draws, strict=True):
        angle = (2 * float(draw) - 1) * 45
        expected = ndimage.rotate(picture, angle, reshape=False, order=1, mode=mode)
        assert abs(image - expected).max() < 1e-4


def test_one_row_by_hand():
    row = torch.tensor([10, 20, 30, 40], dtype=torch.uint8).expand(64, 1, 1, 4)
    found = {}
    for fill in ("nearest", "reflect", "zero"):
        shifted = Augmentation(shift=0.5, fill=fill)(row, generator())
        found[fill] = {tuple(each) for each in shifted[:, 0, 0].tolist()}
    # a row has one pixel of height, so a shift by up to half of it rounds to none
    common = {(10, 20, 30, 40)}
    assert found["nearest"] == common | {
        (30, 40, 40, 40), (20, 30, 40, 40), (10, 10, 20, 30), (10, 10, 10, 20)
    }  # fmt: skip
    assert found["reflect"] == common | {
        (30, 40, 40, 30), (20, 30, 40, 40), (10, 10, 20, 30), (20, 10, 10, 20)
    }  # fmt: skip
    assert found["zero"] == common | {
        (30, 40, 0, 0), (20, 30, 40, 0), (0, 10, 20, 30), (0, 0, 10, 20)
    }  # fmt: skip


def test_switching_one_part_off_does_not_change_the_others(images):
    without = replace(SHIFT_AND_FLIP, flip=False)(images.inputs, generator())
    both = SHIFT_AND_FLIP(images.inputs, generator())
    unflipped = torch.rand((4, 60), generator=generator())[1] >= 0.5
    assert torch.equal(both[unflipped], without[unflipped])
    assert not torch.equal(both, without)


def test_bytes_and_floats_agree(images):
    floats = ALL_PARTS(images.inputs.float(), generator())
    assert torch.equal(ALL_PARTS(images.inputs, generator()), floats.round().to(torch.uint8))


def test_wrong_shapes_and_parameters_are_refused():
    with pytest.raises(UserError, match=r"N x C x H x W, not of shape \(3, 2\)"):
        ALL_PARTS(torch.zeros(3, 2), generator())
    with pytest.raises(UserError, match="shift must be between 0 and 1, not 4"):
        Augmentation(shift=4)
    with pytest.raises(UserError, match="rotation must be between 0 and 180 degrees"):
        Augmentation(rotation=-1)
    with pytest.raises(UserError, match="fill must be 'nearest', 'reflect' or 'zero', not 'wrap'"):
        Augmentation(fill="wrap")
