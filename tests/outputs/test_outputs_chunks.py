"""Chunks and collection."""

import numpy as np
import pytest
import torch

from dpn_plugin.outputs import chunks, collect, score_chunks


@pytest.mark.parametrize("chunk_bytes", [1, 24, 100, 10**9])
def test_chunks_put_together_are_the_array(chunk_bytes):
    array = np.random.default_rng(0).normal(size=(17, 3)).astype(np.float32)
    pieces = list(chunks(array, chunk_bytes))
    np.testing.assert_array_equal(torch.cat(pieces), array)
    assert max(piece.nbytes for piece in pieces) <= max(chunk_bytes, 12)


def test_a_chunk_is_a_copy_that_outlives_the_file(tmp_path):
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


def test_scores_need_no_gradients():
    weight = torch.ones(4, requires_grad=True)
    assert not score_chunks(lambda z: z @ weight, np.ones((5, 4), np.float32)).requires_grad


def test_collect_runs_every_batch_once_and_keeps_the_labels():
    layer, calls = torch.nn.Linear(3, 2), []

    def forward(x):
        calls.append(len(x))
        return {"logits": layer(x), "features": x}

    data = [(torch.randn(4, 3), torch.arange(4)), (torch.randn(2, 3), torch.arange(2))]
    found = list(collect(forward, data))
    assert calls == [4, 2]
    for (x, labels), batch in zip(data, found, strict=True):
        torch.testing.assert_close(batch["logits"], layer(x).detach())
        assert torch.equal(batch["labels"], labels)


def test_collect_does_not_leave_its_caller_without_gradients():
    data = [(torch.randn(4, 3), torch.arange(4))]
    for batch in collect(lambda x: {"logits": x * 2}, data):
        assert batch["logits"].is_inference()
        assert not torch.is_inference_mode_enabled()
