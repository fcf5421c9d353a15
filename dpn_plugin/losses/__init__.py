"""Training objectives: modules of ``(logits, target)`` in which a target below zero means OOD."""

from dpn_plugin.losses.dirichlet_kl import ForwardKLLoss, ReverseKLLoss
from dpn_plugin.losses.evidential import EvidentialLoss, evidential_log_concentration
from dpn_plugin.losses.presets import (
    dpn_minus,
    dpn_minus_anchored,
    dpn_plus,
    dpn_plus_anchored,
    outlier_exposure,
)
from dpn_plugin.losses.representation_gap import RepresentationGapLoss

__all__ = [
    "EvidentialLoss",
    "ForwardKLLoss",
    "RepresentationGapLoss",
    "ReverseKLLoss",
    "dpn_minus",
    "dpn_minus_anchored",
    "dpn_plus",
    "dpn_plus_anchored",
    "evidential_log_concentration",
    "outlier_exposure",
]
