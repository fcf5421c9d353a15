"""Training objectives: modules of ``(logits, target)`` in which a target below zero means OOD."""

from dpn_plugin.losses.belief_matching import BeliefMatchingLoss
from dpn_plugin.losses.branch_losses import (
    BackgroundClassLoss,
    ConfidenceLoss,
    ObjectosphereLoss,
    VOSLoss,
    VOSRegLoss,
)
from dpn_plugin.losses.branches import Branch
from dpn_plugin.losses.centre_losses import (
    CentreLoss,
    ClassAnchorLoss,
    DeepSADLoss,
    DeepSVDDLoss,
    IILoss,
    MCHADLoss,
)
from dpn_plugin.losses.density_aware import DensityAwareLoss
from dpn_plugin.losses.dirichlet_kl import ForwardKLLoss, ReverseKLLoss
from dpn_plugin.losses.distribution_distillation import DistributionDistillationLoss
from dpn_plugin.losses.evidence import evidential_log_concentration
from dpn_plugin.losses.evidential import EvidentialLoss
from dpn_plugin.losses.feature_loss import FeatureLoss, NetworkOutputs, group_mean
from dpn_plugin.losses.fisher_evidential import FisherEvidentialLoss
from dpn_plugin.losses.flexible_evidential import FlexibleEvidentialLoss
from dpn_plugin.losses.presets import (
    dpn_minus,
    dpn_minus_anchored,
    dpn_plus,
    dpn_plus_anchored,
)
from dpn_plugin.losses.relaxed_evidential import RelaxedEvidentialLoss, RevisitedEvidentialLoss
from dpn_plugin.losses.representation_gap import RepresentationGapLoss
from dpn_plugin.losses.soft_targets import (
    MixtureExposureLoss,
    UniformOutliersLoss,
    outlier_exposure,
)

__all__ = [
    "BackgroundClassLoss",
    "BeliefMatchingLoss",
    "Branch",
    "CentreLoss",
    "ClassAnchorLoss",
    "ConfidenceLoss",
    "DeepSADLoss",
    "DeepSVDDLoss",
    "DensityAwareLoss",
    "DistributionDistillationLoss",
    "EvidentialLoss",
    "FeatureLoss",
    "FisherEvidentialLoss",
    "FlexibleEvidentialLoss",
    "ForwardKLLoss",
    "IILoss",
    "MCHADLoss",
    "MixtureExposureLoss",
    "NetworkOutputs",
    "ObjectosphereLoss",
    "RelaxedEvidentialLoss",
    "RepresentationGapLoss",
    "ReverseKLLoss",
    "RevisitedEvidentialLoss",
    "UniformOutliersLoss",
    "VOSLoss",
    "VOSRegLoss",
    "dpn_minus",
    "dpn_minus_anchored",
    "dpn_plus",
    "dpn_plus_anchored",
    "evidential_log_concentration",
    "group_mean",
    "outlier_exposure",
]
