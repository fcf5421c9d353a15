"""The built-in detectors, losses, sources and backbones pass the conformance kit."""

from collections.abc import Callable

import dpn_plugin
from dpn_plugin.plugins import registry
from dpn_plugin.testing import parametrize_with_checks

#: those of the host that training calls as they are: see test_testing_host.py
HOST_LOSSES = {
    entry.name
    for entry in registry.entries("losses")
    if str(entry.factory).startswith("pytorch_ood.") and entry.name != "ce"
}

GRADIENT = "has the gradient of its value"
PROBE = "no gradient flows from its classifier to the features, see its note"
FLOAT32 = "the host sums its values in float32"

#: (subject, rule): why a loss of the host that we wire breaks it
WIRED_FAILURES = {
    ("loss deep-sad", GRADIENT): PROBE,
    ("loss deep-svdd", GRADIENT): PROBE,
    ("loss ii", GRADIENT): FLOAT32,
    ("loss objectosphere", GRADIENT): FLOAT32,
    ("loss mchad", "counts ood samples"): "the kit's OOD samples are beyond its margin",
}


@parametrize_with_checks(
    WIRED_FAILURES,
    detectors=dpn_plugin.list_detectors("dpn-*"),
    losses=[name for name in dpn_plugin.list_losses() if name not in HOST_LOSSES],
    datasets=[
        "sklearn:digits",
        "sklearn:photograph/china",
        "synthetic:gaussians",
        "synthetic:gaussians-ood",
        "pytorch_ood:GaussianNoise/20",
    ],
    backbones=["vgg16_cifar", "vgg16_tim", "mlp_synthetic"],
)
def test_a_built_in_passes_its_checks(check: Callable[[], None]) -> None:
    check()
