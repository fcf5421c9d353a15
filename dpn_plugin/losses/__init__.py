"""Training objectives: modules of ``(logits, target)`` in which a target below zero means OOD."""

from dpn_plugin.losses.dirichlet_kl import ForwardKLLoss, ReverseKLLoss
from dpn_plugin.losses.evidential import EvidentialLoss, evidential_log_concentration
from dpn_plugin.losses.representation_gap import RepresentationGapLoss, dpn_minus, dpn_plus

__all__ = [
    "EvidentialLoss",
    "ForwardKLLoss",
    "RepresentationGapLoss",
    "ReverseKLLoss",
    "dpn_minus",
    "dpn_plus",
    "evidential_log_concentration",
]
