"""Batches of samples, in an order that is a function of seed and position."""

from collections.abc import Iterable, Iterator

import numpy as np
import torch
from torch import Tensor

from dpn_plugin.data.decoding import decoded_batches
from dpn_plugin.data.inputs import workers_of
from dpn_plugin.data.samples import Samples
from dpn_plugin.errors import UserError


class Batches:
    """
    A loader whose batches are one indexing operation, or are decoded by worker processes.

    Only inputs that are decoded on demand have workers (see
    :class:`~dpn_plugin.data.StreamedImages`); their number changes nothing but the speed.

    The order depends only on the seed and the epoch, so a resumed run continues with the batch that
    it would have seen. With several processes, the batches of all ranks at one step are together
    the batch that a single process with ``world`` times the batch size would see.

    :param samples: the data
    :param batch_size: samples in a batch of this process
    :param shuffle: a new random order each epoch
    :param seed: determines the orders
    :param rank: number of this process
    :param world: number of processes
    :param drop_last: leave out the samples that do not fill a batch in every process; otherwise
        the last batch is smaller, and empty for some ranks if there are fewer samples than ranks
    :raises UserError: if the data does not fill one batch
    """

    def __init__(
        self,
        samples: Samples,
        batch_size: int,
        *,
        shuffle: bool,
        seed: int = 0,
        rank: int = 0,
        world: int = 1,
        drop_last: bool = False,
    ) -> None:
        if batch_size < 1:
            raise UserError(f"batch_size must be at least 1, not {batch_size}.")
        if not 0 <= rank < world:
            raise UserError(f"rank must be at least 0 and below world ({world}), not {rank}.")
        least = batch_size * world if drop_last else 1
        if len(samples) < least:
            raise UserError(
                f"{samples.name} has {len(samples)} samples, fewer than one batch of {least}: "
                "lower the batch size."
            )
        self.samples = samples
        self.seed = seed
        self.shuffle = shuffle
        self.drop_last = drop_last
        self._rank, self._world, self._step = rank, world, batch_size * world

    def __len__(self) -> int:
        """Return the number of steps in an epoch."""
        whole, rest = divmod(len(self.samples), self._step)
        return whole if self.drop_last or not rest else whole + 1

    def epoch(self, epoch: int, start: int = 0, every: int = 1) -> Iterator[tuple[Tensor, Tensor]]:
        """
        Yield inputs and labels of each step of an epoch.

        :param epoch: number of the epoch
        :param start: the first step
        :param every: from one step to the next, to divide the steps among processes
        """
        order, steps = self._order(epoch), range(start, len(self), every)
        rows = (order[step * self._step : (step + 1) * self._step] for step in steps)
        return self._read(rows, min(workers_of(self.samples.inputs), max(0, len(steps) - 1)))

    def forever(self, start: int = 0) -> Iterator[tuple[Tensor, Tensor]]:
        """
        Yield full batches without end; a batch may continue into the next epoch.

        :param start: number of the first batch; batch ``i`` does not depend on it
        """
        return self._read(self._endless(start), workers_of(self.samples.inputs))

    def _endless(self, start: int) -> Iterator[np.ndarray]:
        count, position = len(self.samples), start * self._step
        epoch, offset = divmod(position, count)
        waiting = self._order(epoch)[offset:]
        while True:
            while len(waiting) < self._step:
                epoch += 1
                waiting = np.concatenate([waiting, self._order(epoch)])
            yield waiting[: self._step]
            waiting = waiting[self._step :]

    def _order(self, epoch: int) -> np.ndarray:
        if not self.shuffle:
            return np.arange(len(self.samples))
        return np.random.default_rng([self.seed, epoch]).permutation(len(self.samples))

    def _read(self, batches: Iterable[np.ndarray], workers: int) -> Iterator[tuple[Tensor, Tensor]]:
        own = (torch.from_numpy(rows[self._rank :: self._world].copy()) for rows in batches)
        for rows, inputs in decoded_batches(self.samples.rows, own, workers, self.samples.name):
            yield inputs, self.samples.labels.index_select(0, rows)
