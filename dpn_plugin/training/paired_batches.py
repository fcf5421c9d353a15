"""In-domain and outlier batches side by side."""

from collections.abc import Iterator
from typing import Any

import torch
from torch import Tensor

from dpn_plugin._distributed import Processes
from dpn_plugin.data import Batches
from dpn_plugin.runs import Recipe
from dpn_plugin.training.data import TrainingData


class PairedBatches:
    """
    In-domain and outlier batches side by side, in an order that follows from seed and step.

    An epoch is one pass over the in-domain data; outliers continue beside it.

    :param data: the training data
    :param recipe: the sizes of the batches of each process
    :param processes: which share every batch
    :param seed: of the order
    """

    def __init__(self, data: TrainingData, recipe: Recipe, processes: Processes, seed: int) -> None:
        rank, world = processes.rank, processes.world
        #: the first so many samples of every batch are in-domain
        self.in_domain_size = size = min(recipe.batch_size, len(data.train) // world)
        share: dict[str, Any] = {"shuffle": True, "rank": rank, "world": world}
        views = data.views or (data,)
        self.in_domain = [
            Batches(view.train, size, seed=seed, drop_last=True, **share) for view in views
        ]
        size = recipe.outlier_batch_size
        self.outliers = [
            Batches(view.outliers, size, seed=seed + 1, **share)
            for view in views
            if view.outliers is not None
        ]

    def __len__(self) -> int:
        """Steps in an epoch."""
        return len(self.in_domain[0])

    def rest_of(self, epoch: int, step: int) -> Iterator[tuple[Tensor, Tensor]]:
        """
        Return inputs and labels of the remaining steps of an epoch.

        :param epoch: number of the epoch
        :param step: steps done since the start of the training
        """
        view = epoch % len(self.in_domain)
        in_domain = self.in_domain[view].epoch(epoch, step - epoch * len(self))
        if not self.outliers:
            yield from in_domain
            return
        outliers = self.outliers[view].forever(step)
        for (x, y), (x_out, y_out) in zip(in_domain, outliers, strict=False):
            yield torch.cat([x, x_out]), torch.cat([y, y_out])
