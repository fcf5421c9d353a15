"""
Several detectors that read inputs, with one pass over the samples.

A batch is read, transformed and passed through the model once. All detectors use it, then the
next one is read. The scores are those that each detector gives alone, to the last digit.
"""

import time
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager, nullcontext
from functools import partial
from typing import Any

import torch
from pytorch_ood.api import Detector
from pytorch_ood.detector import NACUE
from torch import Tensor, nn

from dpn_plugin.detectors.stored.inputs import Batches, Loader, fit_inputs
from dpn_plugin.detectors.stored.lockstep import in_lockstep
from dpn_plugin.detectors.stored.shortcuts import TAKES_GRADIENT, score_batch, shortcuts
from dpn_plugin.detectors.wiring import (
    RandomStream,
    SharedForwards,
    device_of,
    models_of,
    preserved_state,
    shared_forwards,
)


class Together:
    """
    Detectors that read inputs. One that fails is left out from then on.

    :param detectors: by name
    :param on_step: is entered whenever the detector of this name runs
    """

    def __init__(
        self,
        detectors: Mapping[str, Detector],
        on_step: Callable[[str], AbstractContextManager[Any]] = nullcontext,
    ) -> None:
        self.detectors, self.on_step = dict(detectors), on_step
        self.failures: dict[str, Exception] = {}
        self._own: dict[str, float] = defaultdict(float)
        self._shared = 0.0

    def seconds(self, name: str) -> float:
        """Return the time of a detector so far, with its share of the common passes."""
        return self._own[name] + self._shared / max(1, len(self.detectors))

    def attempt(self, name: str, work: Callable[[], Any]) -> None:
        """
        Do something for a detector, which is left out if that fails.

        :param name: of the detector
        :param work: what to do
        """
        with self._measured(None, name):
            try:
                work()
            except Exception as error:  # of a plugin's detector; the others go on
                self.failures[name] = error

    def fit(self, names: Iterable[str], batches: Batches) -> None:
        """
        Fit some of the detectors to inputs.

        :param names: those that are fitted to inputs
        :param batches: in-domain samples; others are left out
        """
        names = [name for name in names if name not in self.failures]
        wanted = {name: self.detectors[name] for name in names}
        if not wanted:
            return
        with self._sharing(wanted) as shared:
            works = {name: partial(_fit, each, shared) for name, each in wanted.items()}
            self.failures |= in_lockstep(
                lambda: iter(Loader(batches)),
                works,
                on_batch=lambda batch: shared.batch(batch[0]),
                on_step=partial(self._measured, shared),
            )

    def score(self, batches: Batches) -> dict[str, Tensor]:
        """
        Return the scores of the samples by detector, without those that failed.

        :param batches: the samples
        """
        streams = {name: RandomStream() for name in self.detectors}
        found: dict[str, list[Tensor]] = {name: [] for name in self.detectors}
        active = {n: each for n, each in self.detectors.items() if n not in self.failures}
        with self._sharing(active) as shared:
            for x, _ in batches() if active else ():
                for device, group in _by_device(active).items():
                    on_device = x.to(device)  # not all hosts move inputs themselves
                    with shared.batch(on_device):
                        for name in group:
                            self._score(name, on_device, shared, streams[name], found[name])
        return {name: torch.cat(each) for name, each in found.items() if name not in self.failures}

    def _score(
        self,
        name: str,
        x: Tensor,
        shared: SharedForwards,
        stream: RandomStream,
        found: list[Tensor],
    ) -> None:
        if name in self.failures:
            return
        with self._measured(shared, name), stream.active():
            try:
                with _evaluation_mode(self.detectors[name]):
                    found.append(score_batch(self.detectors[name], x, shared).detach().cpu())
            except Exception as error:  # of a plugin's detector; the others go on
                self.failures[name] = error

    @contextmanager
    def _sharing(self, detectors: Mapping[str, Detector]) -> Iterator[SharedForwards]:
        modules = [model for each in detectors.values() for model in models_of(each)]
        gradients = any(type(each) in TAKES_GRADIENT for each in detectors.values())
        with (
            preserved_state(modules),
            shared_forwards(modules, _layers(detectors.values()), gradients) as shared,
        ):
            yield shared
            self._shared += shared.seconds

    @contextmanager
    def _measured(self, shared: SharedForwards | None, name: str) -> Iterator[None]:
        start, before = time.perf_counter(), shared.seconds if shared else 0.0
        try:
            with self.on_step(name):
                yield
        finally:
            common = shared.seconds - before if shared else 0.0
            self._own[name] += time.perf_counter() - start - common


def _fit(detector: Detector, shared: SharedForwards, batches: Batches) -> None:
    with shortcuts(detector, shared), _evaluation_mode(detector):
        fit_inputs(detector, batches)


@contextmanager
def _evaluation_mode(detector: Detector) -> Iterator[None]:
    """If the block fails, restore the mode of the models, which the next detector reads."""
    try:
        yield
    except Exception:
        for model in models_of(detector):
            model.eval()
        raise


def _layers(detectors: Iterable[Any]) -> list[nn.Module]:
    return [layer for each in detectors if type(each) is NACUE for layer in each.layers]


def _by_device(detectors: Mapping[str, Detector]) -> dict[torch.device, list[str]]:
    found: dict[torch.device, list[str]] = {}
    for name, each in detectors.items():
        found.setdefault(device_of(each), []).append(name)
    return found
