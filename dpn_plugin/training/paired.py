"""In-domain and outlier batches side by side, in an order that seed and step decide."""

from collections.abc import Iterator

import torch
from torch import Tensor

from dpn_plugin.data import Batches
from dpn_plugin.training.material import Material
from dpn_plugin.training.processes import Processes
from dpn_plugin.training.recipe import Recipe

__all__ = ["PairedBatches"]


class PairedBatches:
    """
    An epoch is one pass over the in-domain data; outliers, where there are any, go on beside it.

    :param material: the data
    :param recipe: the sizes of the batches, for each process
    :param processes: share every batch
    :param seed: of the order
    """

    def __init__(self, material: Material, recipe: Recipe, processes: Processes, seed: int) -> None:
        rank, world = processes.rank, processes.world
        size = min(recipe.batch_size, len(material.train) // world)
        self.in_domain = Batches(
            material.train, size, shuffle=True, seed=seed, rank=rank, world=world, drop_last=True
        )
        self.outliers = None
        if material.outliers is not None:
            size = recipe.outlier_batch_size
            self.outliers = Batches(
                material.outliers, size, shuffle=True, seed=seed + 1, rank=rank, world=world
            )

    def __len__(self) -> int:
        """Steps in an epoch."""
        return len(self.in_domain)

    def rest_of(self, epoch: int, step: int) -> Iterator[tuple[Tensor, Tensor]]:
        """
        :param epoch: number of the epoch
        :param step: steps done since the beginning of the training
        :return: inputs and labels of the steps that the epoch still has
        """
        in_domain = self.in_domain.epoch(epoch, step - epoch * len(self))
        if self.outliers is None:
            yield from in_domain
            return
        for (x, y), (x_out, y_out) in zip(in_domain, self.outliers.forever(step), strict=False):
            yield torch.cat([x, x_out]), torch.cat([y, y_out])
