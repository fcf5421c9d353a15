"""Training objectives: modules of ``(logits, target)`` in which a target below zero means OOD."""

from dpn_plugin.losses.belief_matching import BeliefMatchingLoss
from dpn_plugin.losses.density_aware import DensityAwareLoss
from dpn_plugin.losses.dirichlet_kl import ForwardKLLoss, ReverseKLLoss
from dpn_plugin.losses.distribution_distillation import DistributionDistillationLoss
from dpn_plugin.losses.evidence import evidential_log_concentration
from dpn_plugin.losses.evidential import EvidentialLoss
from dpn_plugin.losses.fisher_evidential import FisherEvidentialLoss
from dpn_plugin.losses.flexible_evidential import FlexibleEvidentialLoss
from dpn_plugin.losses.presets import (
    dpn_minus,
    dpn_minus_anchored,
    dpn_plus,
    dpn_plus_anchored,
    outlier_exposure,
)
from dpn_plugin.losses.relaxed_evidential import RelaxedEvidentialLoss, RevisitedEvidentialLoss
from dpn_plugin.losses.representation_gap import RepresentationGapLoss

__all__ = [
    "BeliefMatchingLoss",
    "DensityAwareLoss",
    "DistributionDistillationLoss",
    "EvidentialLoss",
    "FisherEvidentialLoss",
    "FlexibleEvidentialLoss",
    "ForwardKLLoss",
    "RelaxedEvidentialLoss",
    "RepresentationGapLoss",
    "ReverseKLLoss",
    "RevisitedEvidentialLoss",
    "dpn_minus",
    "dpn_minus_anchored",
    "dpn_plus",
    "dpn_plus_anchored",
    "evidential_log_concentration",
    "outlier_exposure",
]
