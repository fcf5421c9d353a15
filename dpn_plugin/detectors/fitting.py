"""Fit a detector, from stored outputs wherever it can."""

from collections.abc import Callable, Iterable, Iterator, Mapping

import numpy as np
import torch
from pytorch_ood.api import Detector
from torch import Tensor

from dpn_plugin.detectors.applicability import NotApplicable
from dpn_plugin.detectors.gaussian_kl import GaussianKL
from dpn_plugin.detectors.parts import as_maps
from dpn_plugin.detectors.reading import models_of, reads
from dpn_plugin.detectors.stillness import undisturbed
from dpn_plugin.errors import UserError

__all__ = ["Batches", "InDomain", "fit", "stored"]

#: gives pairs of inputs and labels, anew at every call
Batches = Callable[[], Iterable[tuple[Tensor, Tensor]]]

#: what hosts raise for data that they cannot be fitted to; the last is a RuntimeError
HOST_ERRORS = (ValueError, AssertionError, torch.linalg.LinAlgError)


class InDomain:
    """
    Batches without OOD samples, as hosts take them: to be run through more than once.

    :param batches: gives the batches
    """

    def __init__(self, batches: Batches) -> None:
        self.batches = batches

    def __iter__(self) -> Iterator[tuple[Tensor, Tensor]]:
        for x, y in self.batches():
            known = y >= 0
            if known.any():
                yield x[known], y[known]

    def __len__(self) -> int:
        return sum(1 for _ in self.batches())


def fit(detector: Detector, train: Mapping[str, np.ndarray], batches: Batches) -> Detector:
    """
    Fit from stored arrays; the model runs only for a detector that needs more than they have.

    :param detector: any; one that needs no fitting stays as it is
    :param train: ``logits`` and ``features`` of training data and their ``labels``; where these
        are below 0 the sample is OOD and reaches only :class:`GaussianKL`
    :param batches: the same samples, transformed, for detectors that read inputs
    :return: the detector
    :raises NotApplicable: if ``train`` lacks what the detector reads
    :raises UserError: if the detector cannot be fitted to this data
    """
    if not detector.requires_fit:
        return detector
    name = type(detector).__name__
    try:
        with undisturbed(models_of(detector)):
            _fit(detector, train, batches)
    except NotApplicable:
        raise
    except HOST_ERRORS as error:
        raise UserError(f"{name} cannot be fitted: {str(error) or 'a class is missing'}") from error
    return detector


def stored(detector: Detector, outputs: Mapping[str, np.ndarray], kind: str) -> np.ndarray:
    """
    :param detector: who wants them
    :param outputs: arrays by name
    :param kind: ``"logits"`` or ``"features"``
    :raises NotApplicable: if they were not stored, as for ensembles
    """
    if kind not in outputs:
        raise NotApplicable(
            f"{type(detector).__name__} needs {kind}, and this model gives {' and '.join(outputs)}."
        )
    return outputs[kind]


def _fit(detector: Detector, train: Mapping[str, np.ndarray], batches: Batches) -> None:
    kind = _fits_on(detector)
    if kind == "inputs":
        detector.fit(InDomain(batches))
        return
    array, labels = stored(detector, train, kind), np.asarray(train["labels"])
    if not isinstance(detector, GaussianKL):
        array, labels = array[labels >= 0], labels[labels >= 0]
    z, y = torch.from_numpy(np.array(array)).float(), torch.from_numpy(np.array(labels)).long()
    if kind == "logits":
        detector.fit_logits(z, y)
    elif hasattr(detector, "fit_feature_maps"):
        detector.fit_feature_maps(as_maps(z), y)
    else:
        detector.fit_features(z, y)


def _fits_on(detector: Detector) -> str:
    # MahalanobisODIN scores inputs and yet is fitted on features
    return "features" if hasattr(detector, "fit_features") else reads(detector)
