"""Fit a detector, from stored outputs if possible."""

from collections.abc import Callable, Iterable, Iterator, Mapping

import numpy as np
import torch
from pytorch_ood.api import Detector, FeatureMapsDetector
from pytorch_ood.detector import MultiMahalanobis
from torch import Tensor

from dpn_plugin.detectors.gaussian_kl import GaussianKL
from dpn_plugin.detectors.stored.host_workarounds import double_precision, fit_layers
from dpn_plugin.detectors.stored.reading import fits_on, stored_array
from dpn_plugin.detectors.wiring import NotApplicable, as_maps, models_of, preserved_state
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
    """

    def __init__(self, batches: Batches, ood: bool = False) -> None:
        self.batches = batches
        self.ood = ood

    def __iter__(self) -> Iterator[tuple[Tensor, Tensor]]:
        for x, y in self.batches():
            wanted = (y >= 0) | self.ood
            if wanted.any():
                yield x[wanted], y[wanted]

    def __len__(self) -> int:
        return sum(1 for _ in self)


def fit(detector: Detector, train: Mapping[str, np.ndarray], batches: Batches) -> Detector:
    """
    Fit a detector and return it; the model runs only if stored arrays are not enough.

    :param detector: any; one that needs no fitting is not changed
    :param train: ``logits`` and ``features`` of training data and their ``labels``; samples with
        labels below 0 are OOD and used only for :class:`GaussianKL`
    :param batches: the same samples, transformed, for detectors that read inputs
    :raises NotApplicable: if ``train`` lacks what the detector reads
    :raises UserError: if the detector cannot be fitted to this data
    """
    if not detector.requires_fit:
        return detector
    name = type(detector).__name__
    try:
        with preserved_state(models_of(detector)):
            _fit(detector, train, batches)
    except NotApplicable:
        raise
    except HOST_ERRORS as error:
        raise UserError(f"{name} cannot be fitted: {str(error) or 'a class is missing'}") from error
    return detector


def _fit(detector: Detector, train: Mapping[str, np.ndarray], batches: Batches) -> None:
    kind = fits_on(detector)
    if isinstance(detector, MultiMahalanobis):
        fit_layers(detector, Loader(batches))
    elif kind == "inputs":
        detector.fit(Loader(batches))
    else:
        array, labels = _fit_data(detector, stored_array(detector, train, kind), train["labels"])
        with double_precision(detector) as dtype:
            _fit_method(detector, kind)(array.to(dtype), labels)


def _fit_data(detector: Detector, array: np.ndarray, labels: np.ndarray) -> tuple[Tensor, Tensor]:
    wanted = np.ones(len(labels), bool) if isinstance(detector, GaussianKL) else labels >= 0
    # in some versions of numpy a selection of a read-only map is read-only: torch warns about it
    array, labels = np.asarray(array)[wanted], np.asarray(labels)[wanted]
    return torch.from_numpy(array), torch.from_numpy(labels).long()


def _fit_method(detector: Detector, kind: str) -> Callable[[Tensor, Tensor], Detector]:
    if kind == "logits":
        return detector.fit_logits
    if isinstance(detector, FeatureMapsDetector):
        return lambda features, y: detector.fit_feature_maps(as_maps(features), y)
    return detector.fit_features
