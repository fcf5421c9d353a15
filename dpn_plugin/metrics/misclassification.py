"""How well scores tell misclassified from correctly classified in-domain samples."""

import math

import torch
from pytorch_ood.metrics import functional
from torch import Tensor

from dpn_plugin.errors import UserError
from dpn_plugin.metrics.scores import checked_scores

__all__ = ["misclassification_metrics"]


def misclassification_metrics(scores: Tensor, correct: Tensor) -> dict[str, float]:
    """
    Misclassified samples are the positive class. Where all samples are right, or all are wrong,
    there is nothing to tell apart and both figures are NaN.

    :param scores: of in-domain samples, shape (N,); larger means more uncertain
    :param correct: whether each was classified correctly, boolean, shape (N,)
    :return: ``auroc`` and ``aupr``, fractions between 0 and 1
    :raises UserError: if the shapes differ, there are no scores, or some are not finite
    """
    scores = checked_scores("scores", scores)
    correct = correct.cpu().bool()
    if correct.shape != scores.shape:
        raise UserError(f"correct has shape {tuple(correct.shape)}, scores {tuple(scores.shape)}.")
    if correct.all() or not correct.any():
        return {"auroc": math.nan, "aupr": math.nan}
    # the host calls a positive sample OOD and gives it a negative label
    labels = torch.where(correct, 0, -1)
    return {
        "auroc": float(functional.auroc(scores, labels)),
        "aupr": float(functional.aupr(scores, labels)),
    }
