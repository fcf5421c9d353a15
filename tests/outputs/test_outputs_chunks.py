"""Stored arrays are read a bounded number of rows at a time."""

import numpy as np
import pytest
import torch

from dpn_plugin.outputs import chunks, score_chunks


@pytest.mark.parametrize("chunk_bytes", [1, 24, 100, 10**9])
def test_joined_chunks_are_the_array(chunk_bytes):
    array = np.random.default_rng(0).normal(size=(17, 3)).astype(np.float32)
    parts = list(chunks(array, chunk_bytes))
    np.testing.assert_array_equal(torch.cat(parts), array)
    assert max(part.nbytes for part in parts) <= max(chunk_bytes, 12)


def test_a_chunk_is_a_copy(tmp_path):
    np.save(tmp_path / "a.npy", np.arange(6.0).reshape(3, 2))
    mapped = np.load(tmp_path / "a.npy", mmap_mode="r")
    first, *_ = list(chunks(mapped, 16))
    first += 1
    np.testing.assert_array_equal(mapped[0], [0, 1])


def test_a_slice_of_a_mapped_file_can_be_scored(tmp_path):
    array = np.random.default_rng(0).normal(size=(50, 4))
    np.save(tmp_path / "a.npy", array)
    mapped = np.load(tmp_path / "a.npy", mmap_mode="r")
    scores = score_chunks(lambda z: z.logsumexp(dim=1), mapped[10:40], chunk_bytes=100)
    torch.testing.assert_close(scores, torch.tensor(array[10:40]).logsumexp(dim=1))


def test_scores_have_no_gradients():
    weight = torch.ones(4, requires_grad=True)
    assert not score_chunks(lambda z: z @ weight, np.ones((5, 4), np.float32)).requires_grad
