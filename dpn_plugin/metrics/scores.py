"""Scores as every measurement takes them."""

import torch
from torch import Tensor

from dpn_plugin.errors import UserError

__all__ = ["checked_scores"]


def checked_scores(name: str, scores: Tensor) -> Tensor:
    """
    :param name: what the caller calls them
    :param scores: shape (N,), any real type
    :return: the scores in float64, on the CPU
    :raises UserError: if there are none, they are not a vector, or some are not finite
    """
    if scores.dim() != 1 or len(scores) == 0:
        raise UserError(f"{name} must be a vector with values, got shape {tuple(scores.shape)}.")
    scores = scores.detach().cpu().to(torch.float64)
    broken = int((~torch.isfinite(scores)).sum())
    if broken:
        raise UserError(f"{name}: {broken} of {len(scores)} scores are NaN or infinite.")
    return scores
