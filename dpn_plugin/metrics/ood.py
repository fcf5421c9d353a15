"""How well scores separate in-domain from OOD samples, and correct from misclassified ones."""

import math

import torch
from pytorch_ood.metrics import AUPR, AUROC, FPRAtTPR, MetricCollection, functional
from torch import Tensor

from dpn_plugin.errors import UserError

_KEYS = {"AUROC": "auroc", "AUPR-IN": "aupr_in", "AUPR-OUT": "aupr_out", "FPR95TPR": "fpr95"}


def ood_metrics(in_scores: Tensor, out_scores: Tensor) -> dict[str, float]:
    """
    Return ``auroc``, ``aupr_in``, ``aupr_out`` and ``fpr95`` of OOD detection.

    All are fractions between 0 and 1, as pytorch-ood and OpenOOD define them. Equal scores share
    one threshold, so ties count half in the AUROC.

    ``auroc``
        the probability that an OOD sample scores above an in-domain one
    ``aupr_out``
        area under precision and recall (trapezoids) with OOD samples as the positive class
    ``aupr_in``
        the same with in-domain samples as the positive class, for which small scores are evidence
    ``fpr95``
        the share of in-domain samples rejected by the first threshold that rejects 95 % of the OOD
        samples: OOD is the positive class here too, lower is better

    :param in_scores: scores of in-domain samples, shape (N,); larger means more likely OOD
    :param out_scores: scores of OOD samples, shape (M,)
    :raises UserError: if there are no scores, or some are not finite
    """
    in_scores = check_scores("in_scores", in_scores)
    out_scores = check_scores("out_scores", out_scores)
    labels = torch.cat([torch.zeros(len(in_scores)), -torch.ones(len(out_scores))]).int()
    # one collection, so that all four share one sort
    metrics = MetricCollection([AUROC(), AUPR("id"), AUPR("ood"), FPRAtTPR(0.95)])
    found = metrics.update(scores=torch.cat([in_scores, out_scores]), labels=labels).compute()
    return {ours: found[theirs] for theirs, ours in _KEYS.items()}


def misclassification_metrics(scores: Tensor, correct: Tensor) -> dict[str, float]:
    """
    Return ``auroc`` and ``aupr`` of the detection of misclassified in-domain samples.

    Misclassified samples are the positive class. If all samples are classified correctly, or none
    is, both figures are undefined and NaN.

    :param scores: of in-domain samples, shape (N,); larger means more uncertain
    :param correct: whether each was classified correctly, boolean, shape (N,)
    :raises UserError: if the shapes differ, there are no scores, or some are not finite
    """
    scores = check_scores("scores", scores)
    correct = correct.cpu().bool()
    if correct.shape != scores.shape:
        raise UserError(f"correct has shape {tuple(correct.shape)}, scores {tuple(scores.shape)}.")
    if correct.all() or not correct.any():
        return {"auroc": math.nan, "aupr": math.nan}
    # pytorch-ood takes negative labels as the positive class
    labels = torch.where(correct, 0, -1)
    return {
        "auroc": float(functional.auroc(scores, labels)),
        "aupr": float(functional.aupr(scores, labels)),
    }


def rejected_share(in_scores: Tensor, scores: Tensor, accepted: float = 0.95) -> float:
    """
    Return the share of samples that the threshold rejects which accepts so many in-domain samples.

    The threshold is the smallest in-domain score that at least ``accepted`` of the in-domain scores
    do not exceed; scores above it are rejected.

    :param in_scores: of in-domain samples, shape (N,); larger means more likely OOD
    :param scores: of the samples to reject or accept, shape (M,)
    :param accepted: share of the in-domain samples, above 0 and at most 1
    :raises UserError: if there are no scores, some are not finite, or the share is out of range
    """
    if not 0 < accepted <= 1:
        raise UserError(f"accepted must be above 0 and at most 1, not {accepted}.")
    ordered = check_scores("in_scores", in_scores).sort().values
    scores = check_scores("scores", scores)
    # without the tolerance, 0.95 * 100 = 95.00000000000001 would round up to 96
    rank = math.ceil(accepted * len(ordered) - 1e-9)
    return float((scores > ordered[rank - 1]).double().mean())


def check_scores(name: str, scores: Tensor) -> Tensor:
    """
    Return scores in float64 on the CPU.

    :param name: the name of the argument in error messages
    :param scores: shape (N,), any real type
    :raises UserError: if there are none, they are not a vector, or some are not finite
    """
    if scores.dim() != 1 or len(scores) == 0:
        raise UserError(f"{name} must be a vector with values, got shape {tuple(scores.shape)}.")
    scores = scores.detach().cpu().to(torch.float64)
    broken = int((~torch.isfinite(scores)).sum())
    if broken:
        raise UserError(f"{name}: {broken} of {len(scores)} scores are NaN or infinite.")
    return scores
