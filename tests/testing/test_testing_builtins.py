"""The built-in detectors, losses, sources and backbones pass the conformance kit."""

from collections.abc import Callable

import dpn_plugin
from dpn_plugin.testing import parametrize_with_checks


@parametrize_with_checks(
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
