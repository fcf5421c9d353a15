import hashlib
from dataclasses import replace

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from dpn_plugin.data import Samples, fingerprint, hold_out
from dpn_plugin.errors import UserError, UserTypeError


def test_fingerprint_is_sha256_of_type_shape_hashes_of_rows_and_labels(images):
    rows = [row.numpy().tobytes() for row in images.inputs]
    text = b"torch.uint8 (60, 3, 8, 8);"
    text += b"".join(hashlib.blake2b(row, digest_size=16).digest() for row in rows)
    text += images.labels.numpy().tobytes()
    assert fingerprint(images) == hashlib.sha256(text).hexdigest()


@pytest.mark.parametrize("change", ["pixel", "label", "order", "shape"])
def test_fingerprint_changes_with_the_data(images, change):
    inputs, labels = images.inputs.clone(), images.labels.clone()
    if change == "pixel":
        inputs[59, 2, 7, 7] ^= 1
    elif change == "label":
        labels[0] = 2
    elif change == "order":
        inputs = inputs.flip(0)
    else:
        inputs = inputs.reshape(60, 3, 4, 16)
    assert fingerprint(replace(images, inputs=inputs, labels=labels)) != fingerprint(images)


def test_fingerprint_does_not_depend_on_name_or_memory_layout(images):
    strided = images.inputs.permute(0, 2, 3, 1).contiguous().permute(0, 3, 1, 2)
    assert not strided.is_contiguous()
    other = replace(images, inputs=strided, name="other")
    assert fingerprint(other) == fingerprint(images)


def test_fingerprint_of_data_larger_than_a_chunk_covers_its_end():
    large = Samples(torch.zeros(2000, 1, 100, 100, dtype=torch.uint8), torch.zeros(2000).long(), "")
    changed = replace(large, inputs=large.inputs.clone())
    changed.inputs[-1, 0, -1, -1] = 1
    assert fingerprint(changed) != fingerprint(large)


def test_subset_takes_inputs_and_labels_in_the_given_order(images):
    part = images.subset(torch.tensor([59, 0]))
    assert len(part) == 2
    assert part.labels.tolist() == [2, 0]
    assert torch.equal(part.inputs[0], images.inputs[59])


@pytest.mark.parametrize(
    ("inputs", "labels", "error", "message"),
    [
        (torch.zeros(2, 3), torch.zeros(2), UserTypeError, "labels of x must be int64"),
        (
            torch.zeros(2, 3).double(),
            torch.zeros(2).long(),
            UserTypeError,
            "uint8 images or float32",
        ),
        (torch.zeros(2, 3, 3, 3), torch.zeros(2).long(), UserError, r"not of shape \(2, 3, 3, 3\)"),
        (torch.zeros(2, 3).byte(), torch.zeros(2).long(), UserError, r"not of shape \(2, 3\)"),
        (torch.zeros(2, 3), torch.zeros(3).long(), UserError, r"of shape \(2,\)"),
    ],
)
def test_samples_of_another_type_or_shape_are_refused(inputs, labels, error, message):
    with pytest.raises(error, match=message):
        Samples(inputs, labels, "x")


def numbered(labels):
    count = len(labels)
    return Samples(torch.arange(count).float()[:, None], torch.tensor(labels), "numbered")


@given(
    st.lists(st.integers(-1, 4), min_size=1, max_size=80), st.floats(0.05, 0.95), st.integers(0, 99)
)
def test_the_parts_are_disjoint_complete_ordered_and_stratified(labels, fraction, seed):
    samples = numbered(labels)
    if len(labels) == len(set(labels)):
        with pytest.raises(UserError, match="too few samples"):
            hold_out(samples, fraction, seed)
        return
    remaining, held = hold_out(samples, fraction, seed)
    rows = [part.inputs[:, 0].tolist() for part in (remaining, held)]
    assert sorted(rows[0] + rows[1]) == list(range(len(labels)))
    assert all(row == sorted(row) for row in rows)
    for label in set(labels):
        count, mine = labels.count(label), int((held.labels == label).sum())
        assert abs(mine - fraction * count) <= 1
        assert count < 2 or 1 <= mine < count


def test_the_split_depends_on_the_seed(images):
    parts = [fingerprint(hold_out(images, 0.2, seed)[1]) for seed in (0, 0, 1)]
    assert parts[0] == parts[1] != parts[2]


@pytest.mark.parametrize("fraction", [0, 1, -0.1, float("nan")])
def test_a_fraction_out_of_range_is_refused(images, fraction):
    with pytest.raises(UserError, match="fraction must be between 0 and 1"):
        hold_out(images, fraction, 0)
