"""What a bundle says about images."""

from collections.abc import Sequence
from dataclasses import dataclass

import pandas as pd
import torch
from torch import Tensor

from dpn_plugin.functional import DirichletMeasures

#: the columns of the measures; ``log_neg_differential_entropy`` is for detectors only
MEASURES = (
    "max_p",
    "entropy",
    "mutual_information",
    "log_precision",
    "differential_entropy",
)
SOURCES = ("p_correct", "p_misclassified", "p_ood")


@dataclass(frozen=True)
class DetectorResult:
    """
    What one detector says about N images.

    :param score: larger is more OOD, float64
    :param p_value: small for images unlike the calibration samples, float64
    :param rejected: whether the image is rejected at the bundle's level
    """

    score: Tensor
    p_value: Tensor
    rejected: Tensor


@dataclass(frozen=True)
class BundleResult:
    """
    What a bundle says about N images, on the CPU.

    :param prediction: name of the predicted class of each
    :param probabilities: of the classes, N x K
    :param measures: of the predicted Dirichlet distribution; if predictions are averaged, those
        that need concentrations are NaN
    :param detectors: by name
    :param sources: probabilities of correct, misclassified and OOD, N x 3, if ``dpn-gaussian-kl``
        is in the bundle and was fitted with outliers
    """

    prediction: tuple[str, ...]
    probabilities: Tensor
    measures: DirichletMeasures
    detectors: dict[str, DetectorResult]
    sources: Tensor | None = None

    def __len__(self) -> int:
        return len(self.prediction)

    def to_frame(self) -> pd.DataFrame:
        """Return a row for each image: prediction, measures, sources, and every detector."""
        columns: dict[str, list] = {"prediction": list(self.prediction)}
        columns |= {name: getattr(self.measures, name).tolist() for name in MEASURES}
        if self.sources is not None:
            columns |= dict(zip(SOURCES, self.sources.T.tolist(), strict=True))
        for name, found in self.detectors.items():
            columns[f"{name}.score"] = found.score.tolist()
            columns[f"{name}.p_value"] = found.p_value.tolist()
            columns[f"{name}.rejected"] = found.rejected.tolist()
        return pd.DataFrame(columns)


def joined(parts: Sequence[BundleResult]) -> BundleResult:
    """
    Return the results of several batches as one.

    :param parts: of one bundle, at least one
    """
    first = parts[0]
    if len(parts) == 1:
        return first
    measures = zip(*(part.measures for part in parts), strict=True)
    sources = [part.sources for part in parts if part.sources is not None]
    return BundleResult(
        tuple(name for part in parts for name in part.prediction),
        torch.cat([part.probabilities for part in parts]),
        DirichletMeasures(*map(torch.cat, measures)),
        {name: _joined_detector(name, parts) for name in first.detectors},
        torch.cat(sources) if sources else None,
    )


def _joined_detector(name: str, parts: Sequence[BundleResult]) -> DetectorResult:
    found = [part.detectors[name] for part in parts]
    return DetectorResult(
        torch.cat([each.score for each in found]),
        torch.cat([each.p_value for each in found]),
        torch.cat([each.rejected for each in found]),
    )
