from itertools import chain, islice

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from dpn_plugin.data import Batches, Samples
from dpn_plugin.errors import UserError


def numbered(count):
    return Samples(torch.arange(count).float()[:, None], torch.arange(count), "numbered")


def rows(batches):
    return [labels.tolist() for _, labels in batches]


@given(st.integers(1, 50), st.integers(1, 12), st.integers(0, 9), st.integers(0, 3))
def test_an_epoch_sees_every_sample_once(count, size, seed, epoch):
    batches = Batches(numbered(count), size, shuffle=True, seed=seed)
    seen = rows(batches.epoch(epoch))
    assert len(seen) == len(batches) == -(-count // size)
    assert sorted(chain.from_iterable(seen)) == list(range(count))


def test_inputs_belong_to_their_labels():
    for inputs, labels in Batches(numbered(20), 6, shuffle=True).epoch(0):
        assert torch.equal(inputs[:, 0].long(), labels)


def test_the_order_depends_only_on_seed_and_epoch():
    orders = [
        rows(Batches(numbered(30), 7, shuffle=True, seed=seed).epoch(epoch))
        for seed, epoch in ((0, 0), (0, 0), (0, 1), (1, 0))
    ]
    assert orders[0] == orders[1]
    assert orders[0] != orders[2] != orders[3] != orders[0]


def test_without_shuffling_the_order_is_that_of_the_data():
    assert rows(Batches(numbered(5), 2, shuffle=False).epoch(3)) == [[0, 1], [2, 3], [4]]


@given(st.integers(0, 5), st.integers(0, 20))
def test_an_interrupted_epoch_continues_where_it_stopped(start, first):
    batches = Batches(numbered(30), 6, shuffle=True)
    assert rows(batches.epoch(2, start=start)) == rows(batches.epoch(2))[start:]
    stream = rows(islice(batches.forever(), first + 3))
    assert rows(islice(batches.forever(start=first), 3)) == stream[first:]


@given(st.integers(1, 40), st.integers(1, 9), st.integers(1, 4), st.booleans())
def test_the_ranks_together_see_the_batch_of_one_process(count, size, world, shuffle):
    def epoch(rank, world, size):
        samples = numbered(count)
        return rows(Batches(samples, size, shuffle=shuffle, rank=rank, world=world).epoch(1))

    joined = epoch(0, 1, size * world)
    shares = [epoch(rank, world, size) for rank in range(world)]
    assert all(len(share) == len(joined) for share in shares)
    for step, whole in enumerate(joined):
        assert sorted(chain.from_iterable(share[step] for share in shares)) == sorted(whole)


@given(st.integers(1, 40), st.integers(1, 9), st.integers(1, 3))
def test_a_stream_is_full_batches_and_sees_all_samples_equally_often(count, size, world):
    samples = numbered(count)
    streams = [
        rows(islice(Batches(samples, size, shuffle=True, rank=r, world=world).forever(), count))
        for r in range(world)
    ]
    assert all(len(batch) == size for stream in streams for batch in stream)
    seen = torch.tensor(streams).flatten().bincount()
    assert seen.tolist() == [size * world] * count


def test_dropping_the_last_batch_keeps_only_full_ones():
    batches = Batches(numbered(23), 5, shuffle=True, world=2, drop_last=True)
    assert [len(labels) for labels in rows(batches.epoch(0))] == [5, 5]
    assert len(batches) == 2


@pytest.mark.parametrize(
    ("keys", "message"),
    [
        ({"batch_size": 0}, "batch_size must be at least 1, not 0"),
        ({"batch_size": 2, "rank": 2, "world": 2}, r"below world \(2\), not 2"),
        (
            {"batch_size": 6, "world": 2, "drop_last": True},
            "10 samples, fewer than one batch",
        ),
    ],
)
def test_invalid_batches_are_refused(keys, message):
    with pytest.raises(UserError, match=message):
        Batches(numbered(10), shuffle=True, **keys)
