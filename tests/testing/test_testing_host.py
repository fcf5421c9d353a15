"""The detectors of pytorch-ood under the conformance kit; known failures have a reason."""

from collections.abc import Callable

import pytest

from dpn_plugin.plugins.pytorch_ood_source import dpn_detectors
from dpn_plugin.testing import parametrize_with_checks

DIRECTION = "gives noise larger scores than data"
BATCHING = "gives the same scores for any batching"
UNTRAINED = (
    "measured on the untrained features of the kit; docs/detector-matrix.md has trained networks"
)

#: (subject, rule): why the host's detector breaks it on a small ResNet
HOST_FAILURES = {
    ("detector dice", DIRECTION): UNTRAINED,
    ("detector grad-norm", DIRECTION): UNTRAINED,
    ("detector grad-uncertainty", DIRECTION): UNTRAINED,
    ("detector knn", DIRECTION): "its 50 neighbours are more than a class of the kit has samples",
    ("detector nacue", DIRECTION): UNTRAINED,
    ("detector mahalanobis-odin", "leaves inputs and model alone"): (
        "it calls backward(), which leaves gradients in the model; our scores() removes them"
    ),
    ("detector mcd", BATCHING): "every batch draws its own dropout masks",
    ("detector open-max", BATCHING): (
        "distances are measured only to the classes predicted in the batch; our scores() adds a"
        " sample of every class"
    ),
}


@pytest.mark.slow
@parametrize_with_checks(HOST_FAILURES, detectors=[entry.name for entry in dpn_detectors()])
def test_a_detector_of_the_host_passes_its_checks(check: Callable[[], None]) -> None:
    check()
