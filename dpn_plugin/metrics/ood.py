"""How well scores tell in-domain from out-of-distribution samples."""

import torch
from pytorch_ood.metrics import AUPR, AUROC, FPRAtTPR, MetricCollection
from torch import Tensor

from dpn_plugin.metrics.scores import checked_scores

__all__ = ["ood_metrics"]

_KEYS = {"AUROC": "auroc", "AUPR-IN": "aupr_in", "AUPR-OUT": "aupr_out", "FPR95TPR": "fpr95"}


def ood_metrics(in_scores: Tensor, out_scores: Tensor) -> dict[str, float]:
    """
    Fractions between 0 and 1, as pytorch-ood and OpenOOD define them. Equal scores share one
    threshold, so ties count half in the AUROC.

    ``auroc``
        the chance that an OOD sample scores above an in-domain one
    ``aupr_out``
        area under precision and recall (trapezoids), OOD samples being positive
    ``aupr_in``
        the same, in-domain samples being positive and small scores speaking for them
    ``fpr95``
        the share of in-domain samples that the first threshold rejects which rejects 95 % of the
        OOD samples: OOD is positive here too, lower is better

    :param in_scores: scores of in-domain samples, shape (N,); larger means more likely OOD
    :param out_scores: scores of OOD samples, shape (M,)
    :return: ``auroc``, ``aupr_in``, ``aupr_out``, ``fpr95``
    :raises UserError: if there are no scores, or some are not finite
    """
    in_scores = checked_scores("in_scores", in_scores)
    out_scores = checked_scores("out_scores", out_scores)
    labels = torch.cat([torch.zeros(len(in_scores)), -torch.ones(len(out_scores))]).int()
    # one collection, so that all four share one sort
    metrics = MetricCollection([AUROC(), AUPR("id"), AUPR("ood"), FPRAtTPR(0.95)])
    found = metrics.update(scores=torch.cat([in_scores, out_scores]), labels=labels).compute()
    return {ours: found[theirs] for theirs, ours in _KEYS.items()}
