"""The outputs of one trained run for all data sets, each computed once."""

from collections.abc import Callable, Iterable, Iterator, Mapping
from functools import cache
from itertools import islice

import numpy as np
import torch
from torch import Tensor

from dpn_plugin._distributed import Processes
from dpn_plugin.data import Batches, Samples
from dpn_plugin.errors import UserError
from dpn_plugin.outputs.key import OutputKey
from dpn_plugin.outputs.store import OutputStore
from dpn_plugin.runs import Predictor, TrainedRun

_BATCH = 256
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
                batches = Batches(self.samples[name], _BATCH, shuffle=False).epoch(0)
                for x, y in islice(batches, start, None, step):
                    yield self.run.transform(x.to(self.processes.device)), y

        return transformed

    def _load_predictor(self) -> Predictor:
        return Predictor(self.run).to(self.processes.device)

    def _compute(self, name: str) -> None:
        """Run the networks over a set; every process computes a part, the primary one stores it."""
        outputs = self._gathered_outputs(name)
        error: UserError | None = None
        if self.processes.primary:
            try:
                self._arrays[name] = self.store.write(self.keys[name], outputs).arrays
            except UserError as raised:
                error = raised
        for _ in outputs:
            pass  # every process must hand in all its batches, also if they cannot be stored
        self.processes.broadcast(lambda: _raise_if(error))

    def _gathered_outputs(self, name: str) -> Iterator[dict[str, Tensor]]:
        """Return the outputs of all batches in order in the primary process, nothing elsewhere."""
        count = len(Batches(self.samples[name], _BATCH, shuffle=False))
        rank, world = self.processes.rank, self.processes.world
        own = self._outputs(name, start=rank, step=world)
        for _ in range(0, count, world):
            gathered = self.processes.gather(next(own, None))
            yield from (outputs for outputs in gathered if outputs is not None)

    def _outputs(self, name: str, start: int, step: int) -> Iterator[dict[str, Tensor]]:
        predictor, device = self.load_predictor(), self.processes.device
        if self.points is not None:
            points = Batches(self.points(name), _BATCH, shuffle=False).epoch(0)
            for z, y in islice(points, start, None, step):
                with torch.inference_mode():
                    found = predictor.outputs_of_features(z.to(device))
                yield {name: tensor.cpu() for name, tensor in {**found, "labels": y}.items()}
            return
        batches = Batches(self.samples[name], _BATCH, shuffle=False).epoch(0)
        for x, y in islice(batches, start, None, step):
            # around the call only: a mode that lasts across ``yield`` would reach the caller
            with torch.inference_mode():
                outputs = predictor.outputs(self.run.transform(x.to(device)))
            if x.ndim == 2:  # points are small, and maps of the plane are drawn from them
                outputs["inputs"] = x
            yield {name: tensor.cpu() for name, tensor in {**outputs, "labels": y}.items()}

    def _key(self, name: str, fingerprint: str) -> OutputKey:
        method = self.run.method
        return OutputKey(
            weights=self.run.weights_hash,
            data=fingerprint,
            transform=self.run.transform.description(),
            split=name,
            extra={"method": method.name, "passes": method.passes, "code": self.run.record.code},
        )


def _raise_if(error: UserError | None) -> None:
    if error is not None:
        raise error
