"""Whether confidence matches accuracy, and the one number that calibrates a classifier."""

import logging
import math
from collections.abc import Callable

import torch
from pytorch_ood.metrics import calibration_error
from torch import Tensor

from dpn_plugin.errors import UserError
from dpn_plugin.metrics.ood import check_scores

_log = logging.getLogger(__name__)

#: Samples per bin, as in Hendrycks et al., *Deep Anomaly Detection with Outlier Exposure*.
BIN_SIZE = 100
#: range of the search for a temperature; beyond it, probabilities are one-hot or uniform
LOWEST, HIGHEST = 1e-3, 1e3


def softmax_confidence(logits: Tensor, temperature: float = 1.0) -> Tensor:
    """
    Return the largest softmax probability of each sample, float64, shape (N,).

    :param logits: shape (N, K)
    :param temperature: from :func:`fit_temperature`
    """
    return torch.softmax(logits.to(torch.float64) / temperature, dim=1).amax(dim=1)


def edl_confidence(logits: Tensor, translation: float = 0.0) -> Tensor:
    r"""
    Return the largest probability of each sample of an evidential model, float64, shape (N,).

    Evidential models have no softmax: :math:`p = \alpha / \alpha_0` with
    :math:`\alpha = \max(z + t, 0) + 1`.

    :param logits: shape (N, K)
    :param translation: :math:`t`, from :func:`fit_translation`
    """
    alpha = torch.relu(logits.to(torch.float64) + translation) + 1
    return alpha.amax(dim=1) / alpha.sum(dim=1)


def calibration_metrics(
    confidence: Tensor,
    correct: Tensor,
    out_confidence: Tensor | None = None,
    seed: int = 0,
    most: int | None = None,
) -> dict[str, float]:
    """
    Return ``rms_error`` and ``ece``, fractions between 0 and 1.

    Samples are sorted by confidence and divided into bins of a hundred (adaptive bins).
    ``rms_error`` is the root of the mean squared, ``ece`` the mean absolute difference between a
    bin's mean confidence and its accuracy. With OOD samples, the error is that of
    :func:`equal_shares` of both kinds, which is the one that the paper reports.

    :param confidence: of in-domain samples, between 0 and 1, shape (N,)
    :param correct: whether each was classified correctly, boolean, shape (N,)
    :param out_confidence: of OOD samples, shape (M,)
    :param seed: of the draw of equal shares, and of the order of equal confidences
    :param most: samples of each kind that are drawn at most; all if ``None``
    :raises UserError: if shapes differ, or a confidence lies outside of 0 to 1
    """
    confidence, correct = _check_confidence("confidence", confidence), correct.cpu().bool()
    if correct.shape != confidence.shape:
        shapes = f"{tuple(correct.shape)}, confidence {tuple(confidence.shape)}"
        raise UserError(f"correct has shape {shapes}.")
    generator = torch.Generator().manual_seed(seed)
    if out_confidence is not None:
        out_confidence = _check_confidence("out_confidence", out_confidence)
        confidence, correct = equal_shares(confidence, correct, out_confidence, generator, most)
    # equal confidences fill bins in the given order, which must not be in-domain before OOD
    order = _drawn(len(confidence), len(confidence), generator)
    confidence, correct = confidence[order], correct[order].double()
    return {
        "rms_error": calibration_error(confidence, correct, p="2", beta=BIN_SIZE),
        "ece": calibration_error(confidence, correct, p="1", beta=BIN_SIZE),
    }


def equal_shares(
    confidence: Tensor,
    correct: Tensor,
    out_confidence: Tensor,
    generator: torch.Generator,
    most: int | None = None,
) -> tuple[Tensor, Tensor]:
    """
    Return the confidence and correctness of equally many in-domain and OOD samples.

    Samples are drawn at random without replacement. An OOD sample is never correct.

    :param confidence: of in-domain samples, shape (N,)
    :param correct: whether each was classified correctly, boolean, shape (N,)
    :param out_confidence: of OOD samples, shape (M,)
    :param generator: the random numbers of the draw
    :param most: samples of each kind at most; as many as there are of the rarer kind if ``None``
    """
    share = min(len(confidence), len(out_confidence))
    share = share if most is None else min(share, most)
    chosen = _drawn(len(confidence), share, generator)
    out_chosen = _drawn(len(out_confidence), share, generator)
    always_wrong = torch.zeros(share, dtype=torch.bool)
    return (
        torch.cat([confidence[chosen], out_confidence[out_chosen]]),
        torch.cat([correct[chosen], always_wrong]),
    )


def fit_temperature(logits: Tensor, labels: Tensor) -> float:
    r"""
    Return the temperature :math:`T` for which :math:`\mathrm{softmax}(z/T)` is most likely.

    The negative log-likelihood is convex in :math:`1/T`: its slope has at most one root.

    .. note:: If the held-out data is classified without a mistake, or not better than at random, no
        finite :math:`T > 0` is best. Then 1 is returned, with a warning in the log.

    :param logits: held-out in-domain samples, shape (N, K)
    :param labels: their classes, shape (N,)
    :raises UserError: if shapes do not fit or a logit is not finite
    """
    z, y = _check_held_out(logits, labels)
    above = z - z.gather(1, y)

    def slope(log_t: float) -> float:
        return float((torch.softmax(z * math.exp(-log_t), dim=1) * above).sum(dim=1).mean())

    low, high = math.log(LOWEST), math.log(HIGHEST)
    if not slope(high) < 0 < slope(low):
        _log.warning("The held-out data determines no temperature; 1 is used.")
        return 1.0
    return math.exp(_root(slope, low, high))


def fit_translation(logits: Tensor, labels: Tensor) -> float:
    r"""
    Return the :math:`t` for which :math:`p = \alpha / \alpha_0` is most likely, with
    :math:`\alpha = \max(z + t, 0) + 1`: the paper's "temperature translating" of evidential models.

    The likelihood is not smooth, so it is evaluated on successively finer grids.

    :param logits: held-out in-domain samples, shape (N, K)
    :param labels: their classes, shape (N,)
    :raises UserError: if shapes do not fit or a logit is not finite
    """
    z, y = _check_held_out(logits, labels)

    def loss(t: float) -> float:
        alpha = torch.relu(z + t) + 1
        return float((alpha.sum(dim=1, keepdim=True) / alpha.gather(1, y)).log().mean())

    # below -max z every probability is 1/K; far above the spread of the logits it nears 1/K again
    return _lowest(loss, -float(z.max()), 10 * (float(z.max() - z.min()) + 1))


def _check_confidence(name: str, confidence: Tensor) -> Tensor:
    confidence = check_scores(name, confidence)
    low, high = float(confidence.min()), float(confidence.max())
    if low < 0 or high > 1 + 1e-6:
        raise UserError(f"{name} must lie between 0 and 1, got values from {low:g} to {high:g}.")
    return confidence


def _check_held_out(logits: Tensor, labels: Tensor) -> tuple[Tensor, Tensor]:
    if logits.dim() != 2 or labels.shape != logits.shape[:1] or len(labels) == 0:
        shapes = f"logits {tuple(logits.shape)} and labels {tuple(labels.shape)}"
        raise UserError(f"Expected logits of shape (N, K) and labels of shape (N,), got {shapes}.")
    if not torch.isfinite(logits).all():
        raise UserError("logits: some are NaN or infinite.")
    if labels.min() < 0 or labels.max() >= logits.shape[1]:
        raise UserError(f"labels must be classes from 0 to {logits.shape[1] - 1}.")
    return logits.detach().cpu().to(torch.float64), labels.cpu().long().unsqueeze(1)


def _drawn(population: int, size: int, generator: torch.Generator) -> Tensor:
    return torch.randperm(population, generator=generator)[:size]


def _root(falling: Callable[[float], float], low: float, high: float) -> float:
    # 40 bisections of a range of 14 leave 1e-11
    for _ in range(40):
        middle = (low + high) / 2
        low, high = (middle, high) if falling(middle) > 0 else (low, middle)
    return (low + high) / 2


def _lowest(loss: Callable[[float], float], low: float, high: float) -> float:
    points, rounds = 101, 5
    for _ in range(rounds):
        step = (high - low) / (points - 1)
        best = min((low + i * step for i in range(points)), key=loss)
        low, high = best - step, best + step
    return best
