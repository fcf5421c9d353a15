"""Every loss of the package, and batches for them."""

from itertools import product

import pytest
import torch

from dpn_plugin.losses import (
    BeliefMatchingLoss,
    DensityAwareLoss,
    EvidentialLoss,
    FisherEvidentialLoss,
    ForwardKLLoss,
    RelaxedEvidentialLoss,
    ReverseKLLoss,
    RevisitedEvidentialLoss,
    dpn_minus,
    dpn_plus,
    dpn_plus_anchored,
    outlier_exposure,
)

FORMS = ("digamma", "log", "mse")
EVIDENCES = ("relu", "exp", "softplus")

SUPERVISED = {
    "dpn-plus": lambda **options: dpn_plus(3, **options),
    "dpn-minus": lambda **options: dpn_minus(3, **options),
    "dpn-plus-anchored": lambda **options: dpn_plus_anchored(3, **options),
    "oe": outlier_exposure,
    "reverse-kl": ReverseKLLoss,
    "reverse-kl-0.1": lambda **options: ReverseKLLoss(ood_concentration=0.1, **options),
    "forward-kl": ForwardKLLoss,
}
EVIDENTIAL = {
    f"{form}-{evidence}": lambda form=form, evidence=evidence, **options: EvidentialLoss(
        form, evidence, **options
    )
    for form, evidence in product(FORMS, EVIDENCES)
}
EVIDENTIAL |= {
    f"fisher-{evidence}": lambda evidence=evidence, **options: FisherEvidentialLoss(
        evidence=evidence, **options
    )
    for evidence in EVIDENCES
}
EVIDENTIAL |= {
    "relaxed": RelaxedEvidentialLoss,
    "revisited": RevisitedEvidentialLoss,
    "belief-matching": BeliefMatchingLoss,
    "density-aware": DensityAwareLoss,
}


@pytest.fixture(params=SUPERVISED)
def supervised(request):
    """A factory of one loss that learns from OOD samples, for three classes."""
    return SUPERVISED[request.param]


@pytest.fixture(params=EVIDENTIAL)
def evidential(request):
    """A factory of one loss that discards OOD samples, for three classes."""
    return EVIDENTIAL[request.param]


@pytest.fixture(params=SUPERVISED | EVIDENTIAL)
def any_loss(request):
    """A factory of one loss, for three classes."""
    return (SUPERVISED | EVIDENTIAL)[request.param]


@pytest.fixture
def logits():
    """Six samples of three classes; every sample has a positive logit."""
    generator = torch.Generator().manual_seed(0)
    z = 3 * torch.randn(6, 3, dtype=torch.float64, generator=generator)
    z[:, 1] = z[:, 1].abs()
    return z


@pytest.fixture
def target():
    """Four in-domain samples and two OOD ones, whose labels differ."""
    return torch.tensor([0, 1, -1, 2, -7, 1])
