"""Any timm model as logits, features, feature maps and a head; the paper's own networks."""

from dpn_plugin.backbones.any_model import Part, as_backbone, is_timm_model, logits_of, model_name
from dpn_plugin.backbones.backbone import BRANCH, Backbone, Outputs
from dpn_plugin.backbones.class_names import find_class_mismatch
from dpn_plugin.backbones.dropout import mc_dropout
from dpn_plugin.backbones.factory import HOST_ERRORS, create_backbone
from dpn_plugin.backbones.frozen import attach_head, base_hash, create_head
from dpn_plugin.backbones.heads import head_modules
from dpn_plugin.backbones.inputs import (
    Preprocessing,
    check_name,
    config_of,
    describe_resizing,
    plan_input,
)
from dpn_plugin.backbones.loading import WeightsDoNotFit
from dpn_plugin.backbones.stems import supports_small_stem
from dpn_plugin.backbones.weights import WeightsFile, tensors_hash

__all__ = [
    "BRANCH",
    "HOST_ERRORS",
    "Backbone",
    "Outputs",
    "Part",
    "Preprocessing",
    "WeightsDoNotFit",
    "WeightsFile",
    "as_backbone",
    "attach_head",
    "base_hash",
    "check_name",
    "config_of",
    "create_backbone",
    "create_head",
    "describe_resizing",
    "find_class_mismatch",
    "head_modules",
    "is_timm_model",
    "logits_of",
    "mc_dropout",
    "model_name",
    "plan_input",
    "supports_small_stem",
    "tensors_hash",
]
