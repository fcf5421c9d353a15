import hashlib
from dataclasses import replace

import pytest
import torch

from dpn_plugin.data import Samples, fingerprint
from dpn_plugin.errors import UserError


def test_fingerprint_is_sha256_of_what_the_documentation_names(images):
    text = b"torch.uint8 (60, 3, 8, 8);" + images.inputs.numpy().tobytes()
    text += b"torch.int64 (60,);" + images.labels.numpy().tobytes()
    assert fingerprint(images) == hashlib.sha256(text).hexdigest()


@pytest.mark.parametrize("change", ["pixel", "label", "order", "shape"])
def test_fingerprint_sees_every_change_of_the_data(images, change):
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
    ("inputs", "labels", "error", "words"),
    [
        (torch.zeros(2, 3), torch.zeros(2), TypeError, "labels of x must be int64"),
        (torch.zeros(2, 3).double(), torch.zeros(2).long(), TypeError, "uint8 images or float32"),
        (torch.zeros(2, 3, 3, 3), torch.zeros(2).long(), UserError, r"not of shape \(2, 3, 3, 3\)"),
        (torch.zeros(2, 3).byte(), torch.zeros(2).long(), UserError, r"not of shape \(2, 3\)"),
        (torch.zeros(2, 3), torch.zeros(3).long(), UserError, r"of shape \(2,\)"),
    ],
)
def test_samples_of_another_type_or_shape_are_refused(inputs, labels, error, words):
    with pytest.raises(error, match=words):
        Samples(inputs, labels, "x")
