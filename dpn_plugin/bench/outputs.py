"""What a trained run says about every data set, each image once."""

from collections.abc import Callable, Iterator
from functools import cached_property

import numpy as np
import torch
from torch import Tensor

from dpn_plugin.bench.data import TestData
from dpn_plugin.data import Batches
from dpn_plugin.outputs import Ingredients, OutputStore, Stored, collect
from dpn_plugin.training import Predictor, Run
from dpn_plugin.training.material import Material

__all__ = ["RunOutputs"]

_BATCH = 256
_HELD_OUT = ("held_out", "held_out_outliers")


class RunOutputs:
    """
    The stored outputs of one run, made on first use.

    Sets are called ``in_domain_test``, ``near.NAME`` and ``far.NAME``, or by the parts of the
    run's own data: ``train``, ``held_out`` and, with outliers, ``held_out_outliers``.

    :param run: a finished run
    :param store: where outputs are kept
    :param data: the test sets
    :param material: the run's training data
    :param device: where the networks run
    """

    def __init__(
        self, run: Run, store: OutputStore, data: TestData, material: Material, device: torch.device
    ) -> None:
        self.run, self.store, self.data, self.device = run, store, data, device
        self.method = run.method
        own = {name: samples for name, samples in vars(material).items() if samples is not None}
        self.samples = {**data.sets, **own}
        self.fingerprints = {**data.fingerprints, **run.record["data"]}

    @cached_property
    def predictor(self) -> Predictor:
        """The networks, loaded when an output is missing or a detector needs them."""
        return Predictor(self.run).to(self.device)

    @property
    def keys(self) -> dict[str, str]:
        """Where the outputs of every set are stored."""
        return {name: self._ingredients(name).key for name in self.samples}

    def arrays(self, name: str) -> dict[str, np.ndarray]:
        """:return: the outputs for a set, memory-mapped"""
        ingredients = self._ingredients(name)
        stored: Stored | None = self.store.open(ingredients.key)
        if stored is None:
            batches = collect(self.predictor.outputs, self.batches(name)(), self.device)
            stored = self.store.write(ingredients, batches)
        return dict(stored.arrays)

    def held_out(self) -> dict[str, np.ndarray]:
        """:return: outputs for the held-out samples, in-domain and, where there are any, OOD"""
        parts = [self.arrays(name) for name in _HELD_OUT if name in self.samples]
        return {name: np.concatenate([part[name] for part in parts]) for name in parts[0]}

    def batches(self, *names: str) -> Callable[[], Iterator[tuple[Tensor, Tensor]]]:
        """:return: a function that gives the samples batch by batch, ready for the networks"""

        def transformed() -> Iterator[tuple[Tensor, Tensor]]:
            for name in names:
                for x, y in Batches(self.samples[name], _BATCH, shuffle=False).epoch(0):
                    yield self.run.transform(x.to(self.device)), y

        return transformed

    def held_out_batches(self) -> Callable[[], Iterator[tuple[Tensor, Tensor]]]:
        """:return: the samples of :meth:`held_out`"""
        return self.batches(*(name for name in _HELD_OUT if name in self.samples))

    def _ingredients(self, name: str) -> Ingredients:
        return Ingredients(
            weights=self.run.weights_hash,
            data=self.fingerprints[name],
            transform=self.run.transform.description(),
            split=name,
            extra={"method": self.method.name, "passes": self.method.passes},
        )
