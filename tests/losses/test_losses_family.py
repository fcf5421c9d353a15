"""The options, columns and schedules of the evidential family."""

import pytest
import torch
from torch.distributions import Dirichlet

import dpn_plugin
from dpn_plugin.errors import UserError
from dpn_plugin.losses import (
    DistributionDistillationLoss,
    EvidentialLoss,
    FisherEvidentialLoss,
    FlexibleEvidentialLoss,
    RelaxedEvidentialLoss,
    RevisitedEvidentialLoss,
)


def test_without_its_weights_fisher_evidential_is_the_square_error_times_trigamma(logits):
    target = torch.tensor([0, 1, 2, 2, 1, 0])
    loss = FisherEvidentialLoss(fisher_weight=0, evidence="exp", reduction="none")
    loss.set_epoch(0)
    alpha = 1 + logits.exp()
    model = Dirichlet(alpha)
    terms = (torch.eye(3)[target] - model.mean) ** 2 + model.variance
    torch.testing.assert_close(loss(logits, target), (terms * torch.polygamma(1, alpha)).sum(1))


def test_relaxed_without_divergence_is_revisited(logits):
    target = torch.tensor([0, 1, 2, 2, 1, 0])
    relaxed = RelaxedEvidentialLoss(lambda2=0.8)
    relaxed.set_epoch(0)
    torch.testing.assert_close(relaxed(logits, target), RevisitedEvidentialLoss()(logits, target))


@pytest.mark.parametrize(
    ("name", "alpha"),
    [
        ("r-edl", lambda z: torch.nn.functional.softplus(z) + 0.1),
        ("re-edl", lambda z: torch.nn.functional.softplus(z) + 0.8),
        ("i-edl", lambda z: torch.nn.functional.softplus(z) + 1),
        ("edl", lambda z: torch.relu(z) + 1),
    ],
)
def test_log_concentrations_are_those_of_the_method(name, alpha, logits):
    loss = dpn_plugin.create_loss(name, num_classes=3)
    torch.testing.assert_close(loss.log_concentrations(logits).exp(), alpha(logits))


def test_the_temperature_is_held_then_falls_to_one():
    loss = DistributionDistillationLoss(3, temperature=9, annealing_epochs=8)
    assert loss.temperature == 1
    found = []
    for epoch in range(10):
        loss.set_epoch(epoch)
        found.append(loss.temperature)
    assert found == [9, 9, 9, 9, 9, 7, 5, 3, 1, 1]


def test_distillation_is_the_likelihood_of_the_members(logits):
    members = torch.randn(2, 6, 3, dtype=torch.float64)
    loss = DistributionDistillationLoss(3, members=2, smoothing=0, reduction="none")
    found = loss(torch.cat([logits, *members], dim=1), torch.zeros(6).long())
    drawn = Dirichlet(logits.exp()).log_prob(members.softmax(2))
    torch.testing.assert_close(found, -drawn.mean(dim=0))
    assert torch.equal(loss.log_concentrations(torch.cat([logits, *members], dim=1)), logits)


def test_distillation_finds_the_dirichlet_that_the_members_come_from():
    torch.manual_seed(0)
    alpha = torch.tensor([4.0, 1.5, 0.7])
    members = Dirichlet(alpha).sample((4000,)).log().reshape(1, -1)
    z = torch.zeros(1, 3, requires_grad=True)
    loss = DistributionDistillationLoss(3, members=4000, smoothing=0)
    optimizer = torch.optim.Adam([z], lr=0.05)
    for _ in range(300):
        optimizer.zero_grad()
        loss(torch.cat([z, members], dim=1), torch.tensor([0])).backward()
        optimizer.step()
    torch.testing.assert_close(z.detach()[0].exp(), alpha, rtol=0.1, atol=0)


def test_labels_do_not_change_the_distillation():
    outputs = torch.randn(4, 12)
    loss = DistributionDistillationLoss(3)
    assert loss(outputs, torch.tensor([0, 1, 2, 0])) == loss(outputs, torch.tensor([2, 2, 1, 1]))


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("f-edl", "3 classes need 2 x 3 \\+ 1 = 7"),
        ("ensemble-distillation", "3 members with 3 classes each have 12"),
    ],
)
def test_another_number_of_columns_is_refused(name, message):
    loss = dpn_plugin.create_loss(name, num_classes=3)
    with pytest.raises(UserError, match=message):
        loss(torch.zeros(2, 3), torch.tensor([0, 1]))
    with pytest.raises(UserError, match="target holds 3, but the logits have 3 classes"):
        loss(torch.zeros(2, loss.columns), torch.tensor([0, 3]))
    with pytest.raises(TypeError, match="needs num_classes"):
        dpn_plugin.create_loss(name)


@pytest.mark.parametrize(
    ("create", "message"),
    [
        (lambda: RelaxedEvidentialLoss(lambda2=0), "lambda2 must be a finite number above 0"),
        (lambda: RevisitedEvidentialLoss(lambda1=-1), "lambda1 must be .* of 0 or more, not -1"),
        (lambda: FisherEvidentialLoss(fisher_weight=-1), "fisher_weight must be .* not -1"),
        (lambda: FisherEvidentialLoss(evidence="gelu"), "evidence must be 'relu', 'exp' or"),
        (lambda: EvidentialLoss(annealing_epochs=0), "annealing_epochs must be at least 1"),
        (lambda: FlexibleEvidentialLoss(1), "num_classes must be at least 2, not 1"),
        (lambda: FlexibleEvidentialLoss(3, allocation_weight=-1), "allocation_weight must be"),
        (lambda: DistributionDistillationLoss(3, temperature=0.5), "temperature must be .* of 1"),
        (lambda: DistributionDistillationLoss(3, smoothing=1), "smoothing must be below 1, not 1"),
        (lambda: DistributionDistillationLoss(3, scale_logits=1), "must be True or False, not 1"),
        (lambda: DistributionDistillationLoss(3, members=0), "members must be at least 1, not 0"),
    ],
)
def test_bad_options_are_refused_with_what_is_allowed(create, message):
    with pytest.raises(UserError, match=message):
        create()
