"""``corrupted:`` on top of other sources: lazily, image by image, with the labels of the source."""

import pickle

import numpy as np
import pytest
import torch
from PIL import Image

from dpn_plugin.data import SourceSpec, clean_spec, load, match_classes, shifted_sets
from dpn_plugin.data.corruptions import corrupt
from dpn_plugin.data.samples import Samples
from dpn_plugin.data.sources import from_corrupted
from dpn_plugin.errors import UserError

DIGITS = "corrupted:sklearn:digits"


@pytest.fixture
def photos(tmp_path):
    """Two classes of three images of different sizes."""
    rng = np.random.default_rng(0)
    for name in ("cat", "dog"):
        (tmp_path / "photos" / name).mkdir(parents=True)
        for k in range(3):
            pixels = rng.integers(0, 256, (20 + k, 24, 3), dtype=np.uint8)
            Image.fromarray(pixels).save(tmp_path / "photos" / name / f"{k}.png")
    return tmp_path


def test_images_are_those_of_the_source_corrupted():
    clean = load("sklearn:digits?split=test", root=".", in_domain=True)
    found = load(f"{DIGITS}?split=test&corruption=noise&severity=3", root=".", in_domain=True)
    expected = [corrupt(each[0].numpy(), "noise", 3) for each in clean.inputs]
    assert torch.equal(found.inputs[:, 0], torch.from_numpy(np.stack(expected)))
    assert torch.equal(found.labels, clean.labels)
    assert found.classes == clean.classes


def test_options_reach_the_other_source():
    noisy = load("sklearn:digits?noise=0.3", root=".")
    found = load(f"{DIGITS}?noise=0.3&corruption=contrast&severity=1", root=".")
    expected = corrupt(noisy.inputs[5, 0].numpy(), "contrast", 1)
    assert np.array_equal(found.inputs[5, 0].numpy(), expected)


def test_an_image_is_the_same_whatever_else_is_read():
    options = "corruption=noise&severity=4"
    whole = load(f"{DIGITS}?{options}", root=".", in_domain=True)
    some = load(f"{DIGITS}?{options}&classes=3&limit=20", root=".", in_domain=True)
    known = {each.numpy().tobytes() for each in whole.inputs}
    assert len(some) == 20
    assert all(each.numpy().tobytes() in known for each in some.inputs)
    source = from_corrupted.load("sklearn:digits", split=None, root=".", corruption="noise")
    again = pickle.loads(pickle.dumps(source.read))  # what a worker process gets
    for index in (900, 3, 900):
        assert np.array_equal(np.array(source.read(index)[0]), np.array(again(index)[0]))


def test_several_severities_follow_one_another():
    found = load(f"{DIGITS}?corruption=blur,jpeg&severity=1,5&split=calibration", root=".")
    assert len(found) == 4 * 180
    parts = [
        f"corruption={c}&severity={s}&split=calibration" for c in ("blur", "jpeg") for s in (1, 5)
    ]
    expected = [load(f"{DIGITS}?{each}", root=".").inputs for each in parts]
    assert torch.equal(found.inputs, torch.cat(expected))


def test_files_are_read_one_by_one_and_corrupted_at_the_wanted_size(photos):
    source = "corrupted:folder:photos?corruption=blur&severity=2"
    found = load(source, root=photos, image_size=(16, 16), channels=3, in_domain=True)
    clean = load("folder:photos", root=photos, image_size=(16, 16), channels=3, in_domain=True)
    expected = corrupt(clean.inputs[4].permute(1, 2, 0).numpy(), "blur", 2)
    assert np.array_equal(found.inputs[4].permute(1, 2, 0).numpy(), expected)
    assert found.classes == ("cat", "dog")
    (photos / "photos" / "dog" / "2.png").write_bytes(b"damaged")
    first = load(f"{source}&classes=cat", root=photos, image_size=(16, 16), in_domain=True)
    assert len(first) == 3  # the damaged one is not read
    with pytest.raises(UserError, match=r"2\.png is not a readable image"):
        load(source, root=photos, image_size=(16, 16), in_domain=True)


@pytest.mark.parametrize(
    ("source", "message"),
    [
        (f"{DIGITS}?corruption=nose", "Unknown corruption 'nose'. Did you mean 'noise'"),
        (f"{DIGITS}?severity=6", "severity must be a whole number from 1 to 5.*not 6"),
        (f"{DIGITS}?severity=1.5", "severity must be.*not 1.5"),
        (f"{DIGITS}?severity=true", "severity must be.*not True"),
        (f"{DIGITS}?parameters=cifra", "Did you mean 'cifar'"),
        (f"{DIGITS}?nose=0.1", "sklearn:digits has no option 'nose'"),
        ("corrupted:synthetic:gaussians", "synthetic:gaussians holds points; only images"),
        ("corrupted:digits", "scheme:argument"),
        ("corrupted:sklern:digits", "Did you mean 'sklearn'"),
    ],
)
def test_mistakes_are_named(source, message):
    with pytest.raises(UserError, match=message):
        load(source, root=".")


def test_a_shift_has_a_set_for_each_corruption_and_severity():
    spec = SourceSpec.parse(f"{DIGITS}?corruption=noise&noise=0.1")
    sets = shifted_sets("grainy", spec)
    assert list(sets) == [f"grainy@{severity}" for severity in (1, 2, 3, 4, 5)]
    assert sets["grainy@4"].options == {"corruption": "noise", "severity": 4, "noise": 0.1}
    several = SourceSpec.parse({"source": DIGITS, "options": {"severity": [2, 5]}})
    assert list(shifted_sets("x", several))[:3] == ["x-noise@2", "x-noise@5", "x-blur@2"]
    assert shifted_sets("r", SourceSpec.parse("folder:r")).keys() == {"r"}


def test_the_clean_source_has_neither_corruption_nor_severity():
    spec = SourceSpec.parse(f"corrupted:{DIGITS}?corruption=noise&severity=1&noise=0.1&limit=5")
    assert clean_spec(spec) == SourceSpec.parse("sklearn:digits?noise=0.1&limit=5")


def test_classes_are_matched_by_name():
    inputs = torch.zeros(3, 1, 2, 2, dtype=torch.uint8)
    samples = Samples(inputs, torch.tensor([0, 1, 1]), "r", ("cat", "owl"))
    assert match_classes(samples, ("ant", "cat", "owl")).labels.tolist() == [1, 2, 2]
    with pytest.raises(UserError, match="r has the class 'owl', which is not in-domain"):
        match_classes(samples, ("ant", "cat"))
