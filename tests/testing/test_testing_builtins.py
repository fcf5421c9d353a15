"""The built-in detectors, losses, sources and backbones pass the conformance kit."""

from collections.abc import Callable

import dpn_plugin
from dpn_plugin.testing import parametrize_with_checks

FLOAT64 = "pytorch-ood 0.4 writes into a float32 tensor: float64 logits raise"

EXPECTED_FAILURES = {
    ("loss oe", "has the gradient of its value"): FLOAT64,
    ("loss oe", "keeps float64 and works in half precision"): FLOAT64,
}


@parametrize_with_checks(
    EXPECTED_FAILURES,
    detectors=dpn_plugin.list_detectors("dpn-*"),
    losses=dpn_plugin.list_losses(),
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
