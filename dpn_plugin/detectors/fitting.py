"""Fit a detector, from stored outputs wherever it can."""

from collections.abc import Callable, Iterable, Iterator, Mapping

import numpy as np
import torch
from pytorch_ood.api import Detector, FeatureMapsDetector
from pytorch_ood.detector import MultiMahalanobis
from torch import Tensor

from dpn_plugin.detectors.applicability import NotApplicable
from dpn_plugin.detectors.gaussian_kl import GaussianKL
from dpn_plugin.detectors.parts import as_maps
from dpn_plugin.detectors.quirks import double_precision, fit_layers
from dpn_plugin.detectors.reading import implements, models_of, reads
from dpn_plugin.detectors.stillness import undisturbed
from dpn_plugin.errors import UserError

__all__ = ["Batches", "Loader", "fit", "stored"]

#: gives pairs of inputs and labels, anew at every call
Batches = Callable[[], Iterable[tuple[Tensor, Tensor]]]

#: what hosts raise for data that they cannot be fitted to; the last is a RuntimeError
HOST_ERRORS = (ValueError, AssertionError, torch.linalg.LinAlgError)


class Loader:
    """
    Batches as hosts take them: to be run through more than once.

    :param batches: gives the batches
    :param ood: whether OOD samples stay among them
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
    if isinstance(detector, MultiMahalanobis):
        fit_layers(detector, Loader(batches))
    elif kind == "inputs":
        detector.fit(Loader(batches))
    else:
        array, labels = _fit_data(detector, stored(detector, train, kind), train["labels"])
        with double_precision(detector) as dtype:
            _fit_method(detector, kind)(array.to(dtype), labels)


def _fit_data(detector: Detector, array: np.ndarray, labels: np.ndarray) -> tuple[Tensor, Tensor]:
    wanted = np.ones(len(labels), bool) if isinstance(detector, GaussianKL) else labels >= 0
    # some versions of numpy let a part of a read-only map be read-only, which torch warns of
    array, labels = np.asarray(array)[wanted], np.asarray(labels)[wanted]
    return torch.from_numpy(array), torch.from_numpy(labels).long()


def _fit_method(detector: Detector, kind: str) -> Callable[[Tensor, Tensor], Detector]:
    if kind == "logits":
        return detector.fit_logits
    if isinstance(detector, FeatureMapsDetector):
        return lambda features, y: detector.fit_feature_maps(as_maps(features), y)
    return detector.fit_features


def _fits_on(detector: Detector) -> str:
    # not always what it scores: MahalanobisODIN is fitted on features and scores inputs
    for kind in ("logits", "features"):
        if implements(detector, f"fit_{kind}"):
            return kind
    return reads(detector) if isinstance(detector, FeatureMapsDetector) else "inputs"
