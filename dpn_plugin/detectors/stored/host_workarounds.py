"""Workarounds for detectors of pytorch-ood 0.4 whose scores depend on the batch or on rounding."""

from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from functools import partial

import torch
from pytorch_ood.api import Detector
from pytorch_ood.detector import KLMatching, Mahalanobis, MahalanobisODIN, MultiMahalanobis, OpenMax
from torch import Tensor

from dpn_plugin.detectors.stored.openmax import open_max_scores
from dpn_plugin.detectors.wiring import device_of

_DELICATE = (KLMatching, Mahalanobis, MahalanobisODIN, MultiMahalanobis)


@contextmanager
def double_precision(detector: Detector) -> Iterator[torch.dtype]:
    """
    Within the block, set torch's default precision to the one in which a detector is fitted.

    The Mahalanobis family (RMD too) inverts a covariance with a ridge of 1e-6 in torch's default
    precision. Features after a layer norm, or features that are always zero, make it singular. In
    float32 the rounding is then larger than the ridge, and scores change with the batch by half of
    their value. KLMatching takes the difference of two sums that nearly agree.

    :param detector: the detector that is fitted in the block
    :return: the precision, which its data must have, too
    """
    before = torch.get_default_dtype()
    wanted = torch.float64 if isinstance(detector, _DELICATE) else torch.float32
    torch.set_default_dtype(wanted)
    try:
        yield wanted
    finally:
        torch.set_default_dtype(before)


def fit_layers(detector: MultiMahalanobis, batches: Iterable[tuple[Tensor, Tensor]]) -> None:
    """
    Fit a detector of several layers with one pass of the model.

    Its own ``fit`` runs the model once for every layer, in the precision of the covariances.

    :param detector: wired to feature maps of several layers
    :param batches: in-domain samples
    """
    means: list[list[Tensor]] = []
    labels = []
    with torch.no_grad():
        for x, y in batches:
            maps = _layers(detector, x.to(device_of(detector)))
            means.append([each.mean(dim=(2, 3)) for each in maps])
            labels.append(y)
    with double_precision(detector) as dtype:
        layers = [torch.cat(layer).to(dtype) for layer in zip(*means, strict=True)]
        detector.fit_structured(layers, torch.cat(labels))


def _layers(detector: MultiMahalanobis, x: Tensor) -> Iterator[Tensor]:
    for layer in detector.model:
        x = layer(x)
        yield x


def score_of_logits(detector: Detector) -> Callable[[Tensor], Tensor]:
    """
    Return the function that scores logits, with results that do not depend on the batch.

    :param detector: a detector of logits
    """
    if isinstance(detector, KLMatching):  # fitted in float64, see double_precision
        return lambda logits: detector.predict_logits(logits.double())
    if isinstance(detector, OpenMax):
        return partial(open_max_scores, detector)
    return detector.predict_logits
