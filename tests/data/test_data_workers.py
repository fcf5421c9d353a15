"""Worker processes decode batches: the same ones in the same order, and their death is reported."""

import multiprocessing
import os
import signal

import pytest
import torch

from dpn_plugin.data import Batches, Samples, StreamedImages
from dpn_plugin.errors import UserError

SHAPE = (3, 5, 4)


def samples(count=60, workers=0, decode=None):
    generator = torch.Generator().manual_seed(0)
    pixels = torch.randint(0, 256, (count, *SHAPE), dtype=torch.uint8, generator=generator)
    inputs = StreamedImages(count, SHAPE, decode=decode or pixels.__getitem__, workers=workers)
    return Samples(inputs, torch.arange(count), "photographs")


def first(batches, count):
    found = [pair for _, pair in zip(range(count), batches, strict=False)]
    return [torch.cat(each) for each in zip(*found, strict=True)]


@pytest.mark.parametrize("workers", [1, 2, 4])
def test_batches_do_not_depend_on_the_number_of_workers(workers):
    alone, several = (
        Batches(samples(workers=count), 7, shuffle=True, seed=3) for count in (0, workers)
    )
    for count, batches in ((9, lambda each: each.epoch(2)), (12, lambda each: each.forever(5))):
        here, there = (first(batches(each), count) for each in (alone, several))
        assert all(map(torch.equal, here, there))


def test_workers_leave_the_random_state_and_the_signal_handlers_as_they_are():
    torch.manual_seed(5)
    before = torch.get_rng_state(), signal.getsignal(signal.SIGCHLD)
    first(Batches(samples(workers=2), 7, shuffle=True).epoch(0), 9)
    assert torch.equal(torch.get_rng_state(), before[0])
    assert signal.getsignal(signal.SIGCHLD) == before[1]


def test_workers_decode_a_few_batches_ahead_not_all():
    decoded = multiprocessing.Value("i", 0)

    def decode(position):
        with decoded.get_lock():
            decoded.value += 1
        return torch.zeros(SHAPE, dtype=torch.uint8)

    batches = Batches(samples(10_000, workers=2, decode=decode), 10, shuffle=True).epoch(0)
    next(batches)
    assert decoded.value <= 10 * (2 * 2 + 2)


def test_an_unreadable_image_is_named_as_it_is_without_workers():
    def decode(position):
        if position == 44:
            raise UserError("photos/44.jpg is not a readable image: truncated")
        return torch.zeros(SHAPE, dtype=torch.uint8)

    with pytest.raises(UserError, match=r"^photos/44.jpg is not a readable image: truncated$"):
        list(Batches(samples(workers=2, decode=decode), 7, shuffle=False).epoch(0))


def test_a_killed_worker_is_reported_in_one_sentence():
    def decode(position):
        if position == 30:
            os.kill(os.getpid(), signal.SIGKILL)
        return torch.zeros(SHAPE, dtype=torch.uint8)

    with pytest.raises(UserError, match=r"decodes images of photographs was killed.*--loaders 1"):
        list(Batches(samples(workers=2, decode=decode), 7, shuffle=False).epoch(0))


def test_workers_end_with_the_batches():
    batches = Batches(samples(workers=2), 7, shuffle=True).forever()
    next(batches)
    assert len(multiprocessing.active_children()) == 2
    batches.close()
    assert not multiprocessing.active_children()
