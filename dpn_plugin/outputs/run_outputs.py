"""The outputs of one trained run for all data sets, each computed once."""

from collections.abc import Callable, Iterable, Iterator, Mapping
from functools import cache

import numpy as np
import torch
from torch import Tensor

from dpn_plugin._distributed import Processes
from dpn_plugin.data import Batches, Samples
from dpn_plugin.outputs.forward_pass import BATCH, ForwardPass
from dpn_plugin.outputs.key import OutputKey
from dpn_plugin.outputs.store import OutputStore
from dpn_plugin.runs import Predictor, TrainedRun

#: the parts of a run's own data that neither training nor tests use
HELD_OUT = ("held_out", "held_out_outliers")
#: the part of a run's own data, or a set of its own, that calibrates thresholds and nothing else
CALIBRATION = "calibration"

Arrays = Mapping[str, np.ndarray]
BatchFunction = Callable[[], Iterator[tuple[Tensor, Tensor]]]


class RunOutputs:
    """
    The outputs of one run. :meth:`collect` computes and stores them, :meth:`arrays` reads them.

    :param run: a finished run
    :param store: where outputs are kept
    :param samples: all data sets by name; the parts of the run's own data are ``train``,
        ``held_out``, with outliers ``outliers`` and ``held_out_outliers``, and ``calibration`` if
        samples are set aside for it
    :param fingerprints: the hash of each of them
    :param processes: this process, with the device that its networks run on, and the others
    :param points: gives the features of a set by name, for a run of heads on a frozen network
    """

    def __init__(
        self,
        run: TrainedRun,
        store: OutputStore,
        samples: Mapping[str, Samples],
        fingerprints: Mapping[str, str],
        processes: Processes,
        points: Callable[[str], Samples] | None = None,
    ) -> None:
        self.points = points
        self.run, self.store, self.processes = run, store, processes
        self.samples = samples
        self.keys = {name: self._key(name, fingerprints[name]) for name in samples}
        self.held_out_names = [name for name in HELD_OUT if name in samples]
        self.load_predictor = cache(self._load_predictor)
        self._arrays: dict[str, Arrays] = {}

    def collect(self, names: Iterable[str]) -> None:
        """
        Compute the outputs that are not stored yet. All processes must call this.

        :param names: the sets whose outputs will be read
        """
        names = list(names)
        for name in self.processes.broadcast(lambda: self._find_missing(names)):
            self._compute(name)

    def _find_missing(self, names: list[str]) -> list[str]:
        for name in names:
            entry = self.store.open(self.keys[name].hash)
            if entry is not None:
                self._arrays[name] = entry.arrays
        return [name for name in names if name not in self._arrays]

    def arrays(self, name: str) -> Arrays:
        """Return the collected outputs for a set by name, memory-mapped."""
        return self._arrays[name]

    def held_out(self) -> dict[str, np.ndarray]:
        """Return the outputs for held-out samples: in-domain and, if there are any, OOD."""
        parts = [self.arrays(name) for name in self.held_out_names]
        return {name: np.concatenate([part[name] for part in parts]) for name in parts[0]}

    def batches(self, *names: str, start: int = 0, step: int = 1) -> BatchFunction:
        """
        Return a function that gives the samples batch by batch, ready for the networks.

        :param names: the sets, one after the other
        :param start: number of the first batch of every set
        :param step: from one batch to the next, to divide them among processes
        """

        def transformed() -> Iterator[tuple[Tensor, Tensor]]:
            for name in names:
                for x, y in _batches(self.samples[name], start, step):
                    yield self.run.transform(x.to(self.processes.device)), y

        return transformed

    def _load_predictor(self) -> Predictor:
        return Predictor(self.run).to(self.processes.device)

    def _compute(self, name: str) -> None:
        """Run the networks over a set; every process computes a part, the primary one stores it."""
        points = None if self.points is None else self.points(name)
        samples = self.samples[name]

        def outputs(start: int, step: int) -> Iterator[dict[str, Tensor]]:
            if points is not None:
                return self._outputs_of_features(points, start, step)
            return self._outputs(samples, start, step)

        key, count = self.keys[name], len(samples)
        entry = ForwardPass(self.store, key, count, outputs, self.processes).run()
        if entry is not None:
            self._arrays[name] = entry.arrays

    def _outputs(self, samples: Samples, start: int, step: int) -> Iterator[dict[str, Tensor]]:
        predictor, device = self.load_predictor(), self.processes.device
        for x, y in _batches(samples, start, step):
            # around the call only: a mode that lasts across ``yield`` would reach the caller
            with torch.inference_mode():
                outputs = predictor.outputs(self.run.transform(x.to(device)))
            if x.ndim == 2:  # points are small, and maps of the plane are drawn from them
                outputs["inputs"] = x
            yield {name: tensor.cpu() for name, tensor in {**outputs, "labels": y}.items()}

    def _outputs_of_features(
        self, points: Samples, start: int, step: int
    ) -> Iterator[dict[str, Tensor]]:
        predictor, device = self.load_predictor(), self.processes.device
        for z, y in _batches(points, start, step):
            with torch.inference_mode():
                found = predictor.outputs_of_features(z.to(device))
            yield {name: tensor.cpu() for name, tensor in {**found, "labels": y}.items()}

    def _key(self, name: str, fingerprint: str) -> OutputKey:
        method = self.run.method
        return OutputKey(
            weights=self.run.weights_hash,
            data=fingerprint,
            transform=self.run.transform.description(),
            split=name,
            extra={"method": method.name, "passes": method.passes, "code": self.run.record.code},
        )


def _batches(samples: Samples, start: int, step: int) -> Iterator[tuple[Tensor, Tensor]]:
    return Batches(samples, BATCH, shuffle=False).epoch(0, start, step)
