"""Whether a classifier is right as often as it says, in-domain and out of distribution."""

import torch
from pytorch_ood.metrics import calibration_error
from torch import Tensor

from dpn_plugin.errors import UserError
from dpn_plugin.metrics.scores import checked_scores

__all__ = ["calibration_metrics", "edl_confidence", "softmax_confidence"]

#: Samples per bin, as in Hendrycks et al., *Deep Anomaly Detection with Outlier Exposure*.
BIN_SIZE = 100


def softmax_confidence(logits: Tensor, temperature: float = 1.0) -> Tensor:
    """
    :param logits: shape (N, K)
    :param temperature: from :func:`~dpn_plugin.metrics.temperature.fit_temperature`
    :return: the largest probability of each sample, float64, shape (N,)
    """
    return torch.softmax(logits.to(torch.float64) / temperature, dim=1).amax(dim=1)


def edl_confidence(logits: Tensor, translation: float = 0.0) -> Tensor:
    r"""
    Evidential models have no softmax: :math:`p = \alpha / \alpha_0` with
    :math:`\alpha = \max(z + t, 0) + 1`.

    :param logits: shape (N, K)
    :param translation: :math:`t`, from :func:`~dpn_plugin.metrics.temperature.fit_translation`
    :return: the largest probability of each sample, float64, shape (N,)
    """
    alpha = torch.relu(logits.to(torch.float64) + translation) + 1
    return alpha.amax(dim=1) / alpha.sum(dim=1)


def calibration_metrics(
    confidence: Tensor, correct: Tensor, out_confidence: Tensor | None = None, seed: int = 0
) -> dict[str, float]:
    """
    Samples are sorted by confidence and fall into bins of a hundred (adaptive bins). ``rms_error``
    is the root of the mean squared, ``ece`` the mean absolute difference between a bin's mean
    confidence and its accuracy. With OOD samples, equal numbers of both kinds are drawn, and an OOD
    sample is always wrong: this is the error that the paper reports.

    :param confidence: of in-domain samples, between 0 and 1, shape (N,)
    :param correct: whether each was classified correctly, boolean, shape (N,)
    :param out_confidence: of OOD samples, shape (M,)
    :param seed: of the draw from the more numerous kind, and of the order of equal confidences
    :return: ``rms_error`` and ``ece``, fractions between 0 and 1
    :raises UserError: if shapes differ, or a confidence lies outside of 0 to 1
    """
    confidence, correct = _confidence("confidence", confidence), correct.cpu().bool()
    if correct.shape != confidence.shape:
        shapes = f"{tuple(correct.shape)}, confidence {tuple(confidence.shape)}"
        raise UserError(f"correct has shape {shapes}.")
    generator = torch.Generator().manual_seed(seed)
    if out_confidence is not None:
        out_confidence = _confidence("out_confidence", out_confidence)
        confidence, correct = _equal_shares(confidence, correct, out_confidence, generator)
    # equal confidences fill bins in the order given, which must not be in-domain before OOD
    order = _drawn(len(confidence), len(confidence), generator)
    confidence, correct = confidence[order], correct[order].double()
    return {
        "rms_error": calibration_error(confidence, correct, p="2", beta=BIN_SIZE),
        "ece": calibration_error(confidence, correct, p="1", beta=BIN_SIZE),
    }


def _equal_shares(
    confidence: Tensor, correct: Tensor, out_confidence: Tensor, generator: torch.Generator
) -> tuple[Tensor, Tensor]:
    share = min(len(confidence), len(out_confidence))
    chosen = _drawn(len(confidence), share, generator)
    out_chosen = _drawn(len(out_confidence), share, generator)
    always_wrong = torch.zeros(share, dtype=torch.bool)
    return (
        torch.cat([confidence[chosen], out_confidence[out_chosen]]),
        torch.cat([correct[chosen], always_wrong]),
    )


def _confidence(name: str, confidence: Tensor) -> Tensor:
    confidence = checked_scores(name, confidence)
    low, high = float(confidence.min()), float(confidence.max())
    if low < 0 or high > 1 + 1e-6:
        raise UserError(f"{name} must lie between 0 and 1, got values from {low:g} to {high:g}.")
    return confidence


def _drawn(population: int, size: int, generator: torch.Generator) -> Tensor:
    return torch.randperm(population, generator=generator)[:size]
