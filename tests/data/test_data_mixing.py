"""Mixtures of in-domain samples and outliers, and of images and fractals."""

import numpy as np
import pytest
import torch
from torch import Tensor

from dpn_plugin.data import MIXINGS
from dpn_plugin.data.fractals import fractal_images
from dpn_plugin.data.pixmix import added, multiplied
from dpn_plugin.errors import UserError

LABELS = torch.tensor([2, 0, 1, 2, -1, -1, -1])


def generator(seed: int = 0) -> torch.Generator:
    return torch.Generator().manual_seed(seed)


def images(count: int = len(LABELS), channels: int = 3, size: int = 12) -> Tensor:
    shape = count, channels, size, size
    return torch.randint(256, shape, dtype=torch.uint8, generator=generator(1))


@pytest.mark.parametrize("inputs", [images(), torch.randn(7, 2), torch.rand(7, 3, 4, 4)])
def test_in_domain_samples_stay_and_outliers_become_mixtures(inputs: Tensor) -> None:
    mixed, soft = MIXINGS["mixoe"]()(inputs, LABELS, 3, generator())
    assert mixed.dtype == inputs.dtype
    assert torch.equal(mixed[:4], inputs[:4])
    assert torch.equal(soft[:4].argmax(1), LABELS[:4])
    torch.testing.assert_close(soft.sum(1), torch.ones(7))
    share = 1 - 3 * float(soft[4:].min())  # of all mixtures of a batch
    tolerance = 0.51 if inputs.dtype == torch.uint8 else 1e-4
    for row in range(4, 7):
        partners = [i for i in range(4) if LABELS[i] == soft[row].argmax()]
        expected = [share * inputs[i].float() + (1 - share) * inputs[row] for i in partners]
        assert any(torch.allclose(e, mixed[row].float(), atol=tolerance) for e in expected)


def test_the_share_of_a_pasted_image_is_that_of_its_pixels() -> None:
    inputs = torch.cat([torch.zeros(4, 1, 10, 10), torch.ones(3, 1, 10, 10)])
    seen = set()
    for seed in range(20):
        mixed, soft = MIXINGS["mixoe"](form="cutmix")(inputs, LABELS, 3, generator(seed))
        outside = mixed[4:].mean()
        torch.testing.assert_close(soft[4:].max(1).values, (1 - outside + outside / 3).repeat(3))
        seen.add(float(outside))
    assert len(seen) > 5


@pytest.mark.parametrize("name", MIXINGS)
def test_mixtures_follow_from_the_state_of_the_generator(name: str) -> None:
    mixing = MIXINGS[name]()
    first, again, other = (mixing(images(), LABELS, 3, generator(s)).inputs for s in (0, 0, 1))
    assert torch.equal(first, again)
    assert not torch.equal(first, other)


@pytest.mark.parametrize("channels", [1, 3])
def test_pixmix_keeps_shape_type_and_range_and_changes_most_images(channels: int) -> None:
    before = images(64, channels)
    mixed, soft = MIXINGS["pixmix"]()(before, torch.zeros(64), 3, generator())
    assert soft is None
    assert (mixed.shape, mixed.dtype) == (before.shape, torch.uint8)
    changed = (mixed != before).flatten(1).any(1).float().mean()
    assert 0.7 < float(changed) < 1  # an image stays with a chance of 1/2 * 1/5
    floats, _ = MIXINGS["pixmix"]()(before / 255, torch.zeros(64), 3, generator())
    assert 0 <= float(floats.min()) < float(floats.max()) <= 1


def test_a_smaller_beta_mixes_more() -> None:
    # smooth images, so that augmentations alone change little
    before = torch.full((200, 1, 12, 12), 0.5)
    change = [
        float((MIXINGS["pixmix"](beta=b)(before, None, 3, generator()).inputs - 0.5).abs().mean())
        for b in (0.5, 20.0)
    ]
    assert change[0] > 1.5 * change[1]


def test_sums_and_products_are_those_of_the_paper() -> None:
    x, y = torch.rand(50), torch.rand(50)
    a, b = torch.tensor(0.8), torch.tensor(0.3)
    expected = (0.8 * (2 * x - 1) + 0.3 * (2 * y - 1) + 1) / 2
    torch.testing.assert_close(added(x, y, a, b), expected)
    expected = torch.exp(0.8 * torch.log(2 * x) + 0.3 * torch.log(2 * y)) / 2
    torch.testing.assert_close(multiplied(x, y, a, b), expected)
    assert multiplied(torch.ones(1), torch.zeros(1), a, -b).isfinite().all()


def test_fractals_are_repeatable_different_and_neither_empty_nor_full() -> None:
    found = fractal_images(20, (24, 32), 3)
    assert found.shape == (20, 3, 24, 32)
    assert torch.equal(found, fractal_images.__wrapped__(20, (24, 32), 3))
    assert not torch.equal(found, fractal_images(20, (24, 32), 3, seed=1))
    covered = (found.amax(1) > 0).float().mean((1, 2)).numpy()
    assert covered.min() > 0.1
    assert covered.max() < 0.95
    flat = found.flatten(1).numpy()
    assert np.abs(np.corrcoef(flat) - np.eye(20)).max() < 0.9


@pytest.mark.parametrize(
    ("name", "options", "kind", "says"),
    [
        ("pixmix", {}, "points", "not points"),
        ("pixmix", {}, "features", "frozen network"),
        ("mixoe", {"form": "cutmix"}, "features", "form=mixup"),
        ("mixoe", {}, "features", None),
        ("pixmix", {}, "images", None),
    ],
)
def test_kinds_of_samples_that_cannot_be_mixed_have_a_reason(name, options, kind, says) -> None:
    reason = MIXINGS[name](**options).why_not(kind)
    assert reason is None if says is None else says in reason


@pytest.mark.parametrize(
    ("name", "options", "says"),
    [
        ("mixoe", {"form": "cut"}, "'mixup' or 'cutmix', not 'cut'"),
        ("mixoe", {"alpha": 0}, "alpha must be a finite number above 0, not 0"),
        ("pixmix", {"k": 0}, "k must be a whole number of 1 or more, not 0"),
        ("pixmix", {"beta": "much"}, "beta must be a finite number above 0, not 'much'"),
        ("pixmix", {"severity": float("inf")}, "severity must be a finite number"),
        ("pixmix", {"fractals": 2.5}, "fractals must be a whole number"),
    ],
)
def test_options_out_of_range_are_refused(name, options, says) -> None:
    with pytest.raises(UserError, match=says):
        MIXINGS[name](**options)
