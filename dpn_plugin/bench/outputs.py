"""What a trained run says about every data set, each image once."""

from collections.abc import Callable, Iterable, Iterator
from functools import cached_property
from itertools import islice

import numpy as np
from torch import Tensor

from dpn_plugin.bench.data import TestData
from dpn_plugin.data import Batches
from dpn_plugin.errors import UserError
from dpn_plugin.outputs import Ingredients, OutputStore, collect, collect_shares
from dpn_plugin.training import Predictor, Run
from dpn_plugin.training.material import Material
from dpn_plugin.training.processes import Processes

__all__ = ["HELD_OUT", "RunOutputs"]

_BATCH = 256
#: the parts of a run's own data that neither training nor tests saw
HELD_OUT = ("held_out", "held_out_outliers")


class RunOutputs:
    """
    The stored outputs of one run, made on first use.

    Sets are called ``in_domain_test``, ``near.NAME`` and ``far.NAME``, or by the parts of the
    run's own data: ``train``, ``held_out`` and, with outliers, ``held_out_outliers``.

    :param run: a finished run
    :param store: where outputs are kept
    :param data: the test sets
    :param material: the run's training data
    :param processes: this process, with the device on which its networks run, and the others
    """

    def __init__(
        self,
        run: Run,
        store: OutputStore,
        data: TestData,
        material: Material,
        processes: Processes,
    ) -> None:
        self.run, self.store, self.data, self.processes = run, store, data, processes
        self.method, self.device = run.method, processes.device
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
        stored = self.store.open(ingredients.key)
        if stored is None:
            outputs = collect(self.predictor.outputs, self.batches(name)(), self.device)
            stored = self.store.write(ingredients, outputs)
        return dict(stored.arrays)

    def share(self, needed: Callable[[], Iterable[str]]) -> None:
        """
        Make missing outputs together, if there are several processes.

        :param needed: the sets that will be read; the primary process decides
        """
        if self.processes.world > 1:
            keys = self.keys
            absent = lambda: [n for n in needed() if self.store.open(keys[n]) is None]  # noqa: E731
            for name in self.processes.from_primary(absent):
                self._make_together(name)

    def _make_together(self, name: str) -> None:
        count = len(Batches(self.samples[name], _BATCH, shuffle=False))
        mine = self.batches(name, start=self.processes.rank, step=self.processes.world)()
        outputs = collect_shares(
            collect(self.predictor.outputs, mine, self.device), count, self.processes
        )
        failures: list[UserError] = []
        if self.processes.primary:
            try:
                self.store.write(self._ingredients(name), outputs)
            except UserError as error:
                failures.append(error)
        for _ in outputs:
            pass  # all processes hand in their shares, also where these cannot be written
        self.processes.from_primary(lambda: _raise_first(failures))

    def held_out(self) -> dict[str, np.ndarray]:
        """:return: outputs for the held-out samples, in-domain and, where there are any, OOD"""
        parts = [self.arrays(name) for name in HELD_OUT if name in self.samples]
        return {name: np.concatenate([part[name] for part in parts]) for name in parts[0]}

    def batches(
        self, *names: str, start: int = 0, step: int = 1
    ) -> Callable[[], Iterator[tuple[Tensor, Tensor]]]:
        """
        :param start: number of the first batch of every set
        :param step: from one batch to the next, to share them with others
        :return: a function that gives the samples batch by batch, ready for the networks
        """

        def transformed() -> Iterator[tuple[Tensor, Tensor]]:
            for name in names:
                batches = Batches(self.samples[name], _BATCH, shuffle=False).epoch(0)
                for x, y in islice(batches, start, None, step):
                    yield self.run.transform(x.to(self.device)), y

        return transformed

    def held_out_batches(self) -> Callable[[], Iterator[tuple[Tensor, Tensor]]]:
        """:return: the samples of :meth:`held_out`"""
        return self.batches(*(name for name in HELD_OUT if name in self.samples))

    def _ingredients(self, name: str) -> Ingredients:
        return Ingredients(
            weights=self.run.weights_hash,
            data=self.fingerprints[name],
            transform=self.run.transform.description(),
            split=name,
            extra={"method": self.method.name, "passes": self.method.passes},
        )


def _raise_first(failures: list[UserError]) -> None:
    for each in failures:
        raise each
