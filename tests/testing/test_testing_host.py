"""pytorch-ood's detectors and losses under the conformance kit; known failures have a reason."""

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

FLOAT64, GRADIENT = "keeps float64 and works in half precision", "has the gradient of its value"
FLOAT32 = "it sums the losses in float32, whatever the logits are"

#: the same for losses that training calls as they are
LOSS_FAILURES = {
    ("loss energy-regularized", "counts ood samples"): (
        "the energies of the kit's samples are beyond its margin"
    ),
    ("loss entropic-open-set", GRADIENT): FLOAT32,
    ("loss entropic-open-set", FLOAT64): FLOAT32,
    ("loss logit-norm", "follows the option reduction"): (
        "it leaves out OOD samples instead of giving them zero; its method trains without any"
    ),
    ("loss outlier-exposure", GRADIENT): FLOAT32,
    ("loss outlier-exposure", FLOAT64): FLOAT32,
}


@parametrize_with_checks(
    LOSS_FAILURES,
    losses=["energy-regularized", "entropic-open-set", "logit-norm", "outlier-exposure"],
)
def test_a_loss_of_the_host_passes_its_checks(check: Callable[[], None]) -> None:
    check()


@pytest.mark.slow
@parametrize_with_checks(HOST_FAILURES, detectors=[entry.name for entry in dpn_detectors()])
def test_a_detector_of_the_host_passes_its_checks(check: Callable[[], None]) -> None:
    check()
