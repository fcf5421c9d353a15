"""Any timm model as logits, features, feature maps and a head; the paper's own networks."""

from dpn_plugin.backbones.backbone import Backbone, Outputs, mc_dropout
from dpn_plugin.backbones.factory import create_backbone
from dpn_plugin.backbones.inputs import check_name, describe_resizing, plan_input
from dpn_plugin.backbones.stems import supports_small_stem

__all__ = [
    "Backbone",
    "Outputs",
    "check_name",
    "create_backbone",
    "describe_resizing",
    "mc_dropout",
    "plan_input",
    "supports_small_stem",
]
