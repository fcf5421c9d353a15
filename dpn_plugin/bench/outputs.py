"""What a trained run says about every data set, each image once."""

from collections.abc import Callable, Iterator

import numpy as np
import torch
from torch import Tensor

from dpn_plugin.bench.data import TestData
from dpn_plugin.data import Batches, Samples, fingerprint
from dpn_plugin.outputs import Ingredients, OutputStore, Stored, collect
from dpn_plugin.training import Predictor, Run
from dpn_plugin.training.material import Material

__all__ = ["RunOutputs"]

_BATCH = 256


class RunOutputs:
    """
    The stored outputs of one run, made on first use.

    :param run: a finished run
    :param store: where outputs are kept
    :param data: the test sets
    :param material: the run's training data
    :param device: where the networks run
    """

    def __init__(
        self, run: Run, store: OutputStore, data: TestData, material: Material, device: str
    ) -> None:
        self.run, self.store, self.data, self.material = run, store, data, material
        self.device = torch.device(device)
        self.keys: dict[str, str] = {}
        self._predictor: Predictor | None = None

    @property
    def predictor(self) -> Predictor:
        """The networks, loaded when an output is missing or a detector needs them."""
        if self._predictor is None:
            self._predictor = Predictor(self.run).to(self.device)
        return self._predictor

    def test(self, name: str) -> Stored:
        """:return: outputs for ``in_domain_test`` or ``group.name``"""
        return self._stored(name, self.data.sets[name], self.data.fingerprints[name])

    def train(self) -> Stored:
        """:return: outputs for the in-domain training samples"""
        return self._stored("train", self.material.train)

    def held_out(self) -> dict[str, np.ndarray]:
        """:return: outputs for the held-out samples, in-domain and, where there are any, OOD"""
        parts = [self._stored("held_out", self.material.held_out)]
        if self.material.held_out_outliers is not None:
            parts.append(self._stored("held_out_outliers", self.material.held_out_outliers))
        return {name: np.concatenate([p.arrays[name] for p in parts]) for name in parts[0].arrays}

    def batches(self, samples: Samples) -> Callable[[], Iterator[tuple[Tensor, Tensor]]]:
        """:return: a function that gives the samples batch by batch, ready for the networks"""

        def transformed() -> Iterator[tuple[Tensor, Tensor]]:
            for x, y in Batches(samples, _BATCH, shuffle=False).epoch(0):
                yield self.run.transform(x.to(self.device)), y

        return transformed

    def _stored(self, name: str, samples: Samples, known: str | None = None) -> Stored:
        ingredients = Ingredients(
            weights=self.run.weights_hash,
            data=known or fingerprint(samples),
            transform=self.run.transform.description(),
            split=name,
            extra={"method": self.run.method.name, "passes": self.run.method.passes},
        )
        self.keys[name] = ingredients.key
        stored = self.store.open(ingredients.key)
        if stored is None:
            batches = self.batches(samples)()
            stored = self.store.write(
                ingredients, collect(self.predictor.outputs, batches, self.device)
            )
        return stored
