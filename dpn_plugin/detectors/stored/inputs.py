"""Fit a detector to inputs."""

from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager

import torch
from pytorch_ood.api import Detector
from pytorch_ood.detector import Gram, MultiMahalanobis
from torch import Tensor

from dpn_plugin.detectors.stored.host_workarounds import fit_layers
from dpn_plugin.detectors.wiring import NotApplicable
from dpn_plugin.errors import UserError

#: returns an iterable of pairs of inputs and labels, a new one at every call
Batches = Callable[[], Iterable[tuple[Tensor, Tensor]]]

#: what hosts raise for data that they cannot be fitted to; the last is a RuntimeError
HOST_ERRORS = (ValueError, AssertionError, torch.linalg.LinAlgError)


class Loader:
    """
    Batches as an object that hosts can iterate over more than once, like a ``DataLoader``.

    :param batches: returns the batches
    :param ood: whether to keep OOD samples
    :param counted: whether the number of batches is counted, for which all of them are read
    """

    def __init__(self, batches: Batches, ood: bool = False, counted: bool = True) -> None:
        self.batches = batches
        self.ood, self.counted = ood, counted

    def __iter__(self) -> Iterator[tuple[Tensor, Tensor]]:
        for x, y in self.batches():
            wanted = (y >= 0) | self.ood
            if wanted.all():  # the batch itself, which detectors share
                yield x, y
            elif wanted.any():
                yield x[wanted], y[wanted]

    def __len__(self) -> int:
        return sum(1 for _ in self) if self.counted else 0


def fit_inputs(detector: Detector, batches: Batches) -> None:
    """
    Fit a detector that reads inputs, in the mode that its model is in.

    :param detector: any that is fitted to inputs
    :param batches: in-domain samples; others are left out
    :raises UserError: if the detector cannot be fitted to this data
    """
    with host_errors(detector):
        if isinstance(detector, MultiMahalanobis):
            fit_layers(detector, Loader(batches))
        else:  # Gram writes the number of batches to its log, and does nothing else with it
            detector.fit(Loader(batches, counted=type(detector) is not Gram))


@contextmanager
def host_errors(detector: Detector) -> Iterator[None]:
    """Within the block, what a host raises for its data becomes a :class:`UserError`."""
    name = type(detector).__name__
    try:
        yield
    except NotApplicable:
        raise
    except HOST_ERRORS as error:
        raise UserError(f"{name} cannot be fitted: {str(error) or 'a class is missing'}") from error
