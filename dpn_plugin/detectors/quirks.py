"""Where a detector of pytorch-ood 0.4 needs help to give one score for one sample, and the help."""

from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager

import torch
from pytorch_ood.api import Detector
from pytorch_ood.detector import KLMatching, Mahalanobis, MahalanobisODIN, MultiMahalanobis, OpenMax
from torch import Tensor

from dpn_plugin.detectors.reading import device_of

__all__ = ["double_precision", "fit_layers", "score_of_logits"]

_DELICATE = (KLMatching, Mahalanobis, MahalanobisODIN, MultiMahalanobis)


@contextmanager
def double_precision(detector: Detector) -> Iterator[torch.dtype]:
    """
    The Mahalanobis family (RMD too) inverts a covariance with a ridge of 1e-6 in torch's default
    precision. Features that end in a layer norm, or that never fire, make it singular; in float32
    the rounding is then larger than the ridge, and scores change with the batch by half their size.
    KLMatching takes the difference of two sums that nearly agree.

    :param detector: going to be fitted within the block
    :return: what its data has to be, and what torch's default is within the block
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
    OpenMax measures distances only to classes that some sample of the batch is predicted as, and
    takes the others for zero. A row for every class lets it measure all, whatever the batch.

    :param detector: of logits
    :return: its scores, the same for any batch
    """
    if isinstance(detector, KLMatching):  # fitted so, see double_precision
        return lambda logits: detector.predict_logits(logits.double())
    if not isinstance(detector, OpenMax):
        return detector.predict_logits

    def score(logits: Tensor) -> Tensor:
        every_class = torch.eye(logits.shape[1]).to(logits)
        return detector.predict_logits(torch.cat([logits, every_class]))[: len(logits)]

    return score
