"""The one number that calibrates a classifier, fitted on held-out in-domain data."""

import logging
import math
from collections.abc import Callable

import torch
from torch import Tensor

from dpn_plugin.errors import UserError

__all__ = ["fit_temperature", "fit_translation"]

_log = logging.getLogger(__name__)
#: where a temperature is looked for; beyond, probabilities are one-hot or uniform
LOWEST, HIGHEST = 1e-3, 1e3


def fit_temperature(logits: Tensor, labels: Tensor) -> float:
    r"""
    The temperature :math:`T` for which :math:`\mathrm{softmax}(z/T)` has the least negative
    log-likelihood, which is convex in :math:`1/T`: its slope has at most one root.

    .. note:: Without a mistake in the held-out data, or with no better accuracy than chance, no
        finite :math:`T > 0` is best. Such data says nothing: 1 is returned, with a warning.

    :param logits: held-out in-domain samples, shape (N, K)
    :param labels: their classes, shape (N,)
    :return: the temperature
    :raises UserError: if shapes do not fit or a logit is not finite
    """
    z, y = _checked(logits, labels)
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
    The :math:`t` with the least negative log-likelihood of :math:`p = \alpha / \alpha_0`,
    :math:`\alpha = \max(z + t, 0) + 1`: the paper's "temperature translating" of evidential models.
    The likelihood has kinks, so it is looked at all over the range and then ever more closely.

    :param logits: held-out in-domain samples, shape (N, K)
    :param labels: their classes, shape (N,)
    :return: the translation
    :raises UserError: if shapes do not fit or a logit is not finite
    """
    z, y = _checked(logits, labels)

    def loss(t: float) -> float:
        alpha = torch.relu(z + t) + 1
        return float((alpha.sum(dim=1, keepdim=True) / alpha.gather(1, y)).log().mean())

    # below -max z every probability is 1/K; far above the spread of the logits it nears 1/K again
    return _lowest(loss, -float(z.max()), 10 * (float(z.max() - z.min()) + 1))


def _checked(logits: Tensor, labels: Tensor) -> tuple[Tensor, Tensor]:
    if logits.dim() != 2 or labels.shape != logits.shape[:1] or len(labels) == 0:
        shapes = f"logits {tuple(logits.shape)} and labels {tuple(labels.shape)}"
        raise UserError(f"Expected logits of shape (N, K) and labels of shape (N,), got {shapes}.")
    if not torch.isfinite(logits).all():
        raise UserError("logits: some are NaN or infinite.")
    if labels.min() < 0 or labels.max() >= logits.shape[1]:
        raise UserError(f"labels must be classes from 0 to {logits.shape[1] - 1}.")
    return logits.detach().cpu().to(torch.float64), labels.cpu().long().unsqueeze(1)


def _root(falling: Callable[[float], float], low: float, high: float) -> float:
    # 40 halvings of a range of 14 leave 1e-11
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
