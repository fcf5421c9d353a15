"""Fit a detector, from stored outputs if possible."""

from collections.abc import Callable, Mapping

import numpy as np
import torch
from pytorch_ood.api import Detector, FeatureMapsDetector
from torch import Tensor

from dpn_plugin.detectors.gaussian_kl import GaussianKL
from dpn_plugin.detectors.stored.host_workarounds import double_precision
from dpn_plugin.detectors.stored.inputs import Batches, host_errors
from dpn_plugin.detectors.stored.reading import fits_on, stored_array
from dpn_plugin.detectors.stored.together import Together
from dpn_plugin.detectors.wiring import as_maps, models_of, preserved_state


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
    kind = fits_on(detector)
    if kind == "inputs":
        alone = Together({"": detector})
        alone.fit([""], batches)
        if alone.failures:
            raise alone.failures[""]
    else:
        with preserved_state(models_of(detector)), host_errors(detector):
            _fit_stored(detector, stored_array(detector, train, kind), train["labels"], kind)
    return detector


def _fit_stored(detector: Detector, array: np.ndarray, labels: np.ndarray, kind: str) -> None:
    values, classes = _fit_data(detector, array, labels)
    with double_precision(detector) as dtype:
        _fit_method(detector, kind)(values.to(dtype), classes)


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
