"""Which arguments a detector gets from a timm model."""

from dpn_plugin.detectors.wiring.arguments import factory_name, filled_arguments, uses_dropout
from dpn_plugin.detectors.wiring.feature_maps import NotApplicable
from dpn_plugin.detectors.wiring.parts import Pooled, as_maps
from dpn_plugin.detectors.wiring.preserved_state import (
    RandomStream,
    device_of,
    evaluation_only,
    models_of,
    preserved_state,
)
from dpn_plugin.detectors.wiring.shared_forward import (
    Pass,
    SharedForward,
    SharedForwards,
    shared_forwards,
)

__all__ = [
    "NotApplicable",
    "Pass",
    "Pooled",
    "RandomStream",
    "SharedForward",
    "SharedForwards",
    "as_maps",
    "device_of",
    "evaluation_only",
    "factory_name",
    "filled_arguments",
    "models_of",
    "preserved_state",
    "shared_forwards",
    "uses_dropout",
]
