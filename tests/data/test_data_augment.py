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


def test_shifts_move_by_whole_pixels_up_to_the_limit_and_repeat_the_border(images):
    shifted = Augmentation(shift=0.25)(images.inputs, generator())
    padded = np.pad(images.inputs.numpy(), [(0, 0), (0, 0), (2, 2), (2, 2)], mode="edge")
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
