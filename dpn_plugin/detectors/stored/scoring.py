"""Score samples with a detector, from stored outputs if possible."""

from collections.abc import Callable, Mapping

import numpy as np
import torch
from pytorch_ood.api import Detector, FeatureMapsDetector
from torch import Tensor

from dpn_plugin.detectors.stored.host_workarounds import score_of_logits
from dpn_plugin.detectors.stored.inputs import Batches
from dpn_plugin.detectors.stored.reading import reads, stored_array
from dpn_plugin.detectors.stored.together import Together
from dpn_plugin.detectors.wiring import as_maps, models_of, preserved_state
from dpn_plugin.errors import UserError
from dpn_plugin.outputs import CHUNK_BYTES, score_chunks

#: some hosts compare every sample with every class and need B x K x D numbers for B x D features,
#: so the chunks are smaller than those of logits
FEATURE_BYTES = 2**18


def scores(detector: Detector, outputs: Mapping[str, np.ndarray], batches: Batches) -> Tensor:
    """
    Return one score per sample; a larger one is more OOD.

    :param detector: fitted, if it needs to be
    :param outputs: ``logits`` and ``features`` of N samples
    :param batches: the same samples, transformed, for detectors that read inputs
    :raises NotApplicable: if ``outputs`` lacks what the detector reads
    :raises UserError: if scores are not finite, or not one per sample
    """
    kind = reads(detector)
    if kind == "inputs":
        return _of_inputs(detector, batches)
    with preserved_state(models_of(detector)):
        array = stored_array(detector, outputs, kind)
        chunk_bytes = CHUNK_BYTES if kind == "logits" else FEATURE_BYTES
        found = score_chunks(score_function(detector), array, chunk_bytes)
    return checked_scores(detector, found)


def score_function(detector: Detector) -> Callable[[Tensor], Tensor]:
    """
    Return the function that scores logits or features, whichever the detector :func:`reads`.

    :param detector: fitted, if it needs to be; it does not read inputs
    """
    if reads(detector) == "logits":
        return score_of_logits(detector)
    if isinstance(detector, FeatureMapsDetector):
        return lambda features: detector.predict_feature_maps(as_maps(features))
    return detector.predict_features


def _of_inputs(detector: Detector, batches: Batches) -> Tensor:
    alone = Together({"": detector})
    found = alone.score(batches)
    if alone.failures:
        raise alone.failures[""]
    return checked_scores(detector, found[""])


def checked_scores(detector: Detector, found: Tensor) -> Tensor:
    """
    Return the scores of a set as they are.

    :param detector: that gave them
    :param found: the scores
    :raises UserError: if scores are not finite, or not one per sample
    """
    name = type(detector).__name__
    if found.ndim != 1:
        raise UserError(f"{name} gives scores of shape {tuple(found.shape)}, not one per sample.")
    infinite = int((~torch.isfinite(found)).sum())
    if infinite:
        raise UserError(f"{name} gives {infinite} of {len(found)} scores that are not finite.")
    return found
