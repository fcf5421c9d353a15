"""The losses of pytorch-ood that are wired to a network have the values of their formulas."""

import math

import pytest
import torch
from pytorch_ood import loss as host
from torch.nn import functional as F

import dpn_plugin
from dpn_plugin.losses import NetworkOutputs

B, K, D = 9, 4, 6
TARGET = torch.tensor([0, 3, 1, 2, 3, 0, -1, -1, -5])
IN = TARGET >= 0


@pytest.fixture
def wired():
    """Return a loss by name and outputs for it, with the branch that it asks for."""

    def create(name, **options):
        torch.manual_seed(3)
        loss = dpn_plugin.create_loss(name, num_classes=K, reduction="none", **options)
        loss.prepare(D)
        head = torch.nn.Linear(D, K)
        features = torch.randn(B, D)
        branch = loss.create_branch(D)
        return loss, NetworkOutputs(2 * torch.randn(B, K), features, branch, head)

    return create


def distance(a, b):
    return float(sum((x - y) ** 2 for x, y in zip(a.tolist(), b.tolist(), strict=True)))


def test_class_anchors_attract_their_class_and_repel_all_others(wired):
    loss, outputs = wired("cac", magnitude=3.0, alpha=0.2)
    values = loss(outputs, TARGET)
    anchors = 3 * torch.eye(K)
    for i, y in enumerate(TARGET.tolist()):
        if y < 0:
            assert values[i] == 0
            continue
        d = [distance(outputs.logits[i], anchor) for anchor in anchors]
        others = sum(math.exp(d[y] - d[c]) for c in range(K) if c != y)
        assert float(values[i]) == pytest.approx(0.2 * d[y] + math.log(1 + others), rel=1e-4)


def test_the_hosts_class_anchors_leave_out_the_last_class():
    # the reason for a formula of our own: if this fails, the host's can be called
    distances = torch.tensor([[1.0, 2.0, 3.0]])
    theirs = host.CACLoss(3, alpha=0.0)(distances, torch.tensor([0]))
    assert float(theirs) == pytest.approx(math.log(1 + 1 + math.exp(-1)))


def test_the_centre_loss_adds_half_the_distance_to_the_centre_of_the_label(wired):
    loss, outputs = wired("center", weight=0.5)
    values = loss(outputs, TARGET).detach()
    for i, y in enumerate(TARGET.tolist()):
        if y >= 0:
            entropy = -float(outputs.logits[i].log_softmax(0)[y])
            expected = entropy + 0.25 * distance(outputs.features[i], outputs.branch.centres[y])
            assert float(values[i]) == pytest.approx(expected, rel=1e-4)
    assert not values[~IN].any()


def test_confidence_without_hints_and_budget_is_the_hosts(wired):
    loss, outputs = wired("confidence", alpha=0.7, budget=0.0, hints=1.0)
    confidence = outputs.branch.confidence(outputs.features[IN]).sigmoid()
    theirs = host.ConfidenceLoss(alpha=0.7)(outputs.logits[IN], confidence, TARGET[IN])
    torch.testing.assert_close(loss(outputs, TARGET)[IN].mean(), theirs)


def test_samples_without_a_hint_have_the_cross_entropy(wired):
    loss, outputs = wired("confidence", alpha=1e-9, hints=0.0)
    expected = F.cross_entropy(outputs.logits[IN], TARGET[IN], reduction="none")
    torch.testing.assert_close(loss(outputs, TARGET)[IN], expected)


@pytest.mark.parametrize(("budget", "grows"), [(0.01, True), (100.0, False)])
def test_the_weight_of_the_confidence_follows_the_budget(wired, budget, grows):
    loss, outputs = wired("confidence", budget=budget)
    loss(outputs, TARGET)
    factor = float(loss.weight) / 0.1
    assert factor == pytest.approx(1 / 0.99 if grows else 1 / 1.01, rel=1e-5)
    outputs.branch.eval()
    before = float(loss.weight)
    loss(outputs, TARGET)
    assert float(loss.weight) == before


def test_the_background_is_a_class_of_its_own(wired):
    loss, outputs = wired("background-class")
    z = torch.cat([outputs.logits, outputs.branch.background(outputs.features)], 1)
    expected = F.cross_entropy(z, torch.where(IN, TARGET, K), reduction="none")
    torch.testing.assert_close(loss(outputs, TARGET), expected)
    odds = z.softmax(1)[:, K] / (1 - z.softmax(1)[:, K])
    score = outputs.branch.own_score(outputs.logits, outputs.features)
    torch.testing.assert_close(score, odds.log(), rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize(
    ("name", "theirs"), [("deep-svdd", "DeepSVDDLoss"), ("deep-sad", "DeepSADLoss")]
)
def test_one_centre_losses_are_the_hosts_and_a_classifier(wired, name, theirs):
    loss, outputs = wired(name)
    values = loss(outputs, TARGET)
    centre = outputs.features[IN].mean(dim=0)
    torch.testing.assert_close(outputs.branch.centre[0], centre)
    theirs = getattr(host, theirs)(D, reduction="none", center=centre)
    rows = IN if name == "deep-svdd" else IN | True
    own = theirs(outputs.features[rows], TARGET[rows])
    classifier = F.cross_entropy(
        outputs.head(outputs.features), TARGET.clamp(min=-1), reduction="none", ignore_index=-1
    )
    torch.testing.assert_close(
        values[rows], (own + classifier[rows]).detach(), rtol=1e-4, atol=1e-4
    )


def test_the_centre_is_set_by_the_first_batch_alone(wired):
    loss, outputs = wired("deep-svdd")
    loss(outputs, TARGET)
    first = outputs.branch.centre.clone()
    loss(outputs._replace(features=outputs.features + 5), TARGET)
    assert torch.equal(outputs.branch.centre, first)


def test_hyperspheres_are_the_hosts_on_the_distances_to_the_branch(wired):
    loss, outputs = wired("mchad", margin=3.0, weight_oe=0.1, radius=0.5)
    theirs = host.MCHADLoss(K, K, radius=0.5, margin=3.0, weight_nll=1.5, weight_oe=0.1)
    centres = outputs.branch.centres.detach()
    d = torch.tensor([[distance(z, c) for c in centres] for z in outputs.logits])
    values = loss(outputs, TARGET)
    torch.testing.assert_close(values[IN].mean() + values[~IN].mean(), theirs(d, TARGET))
    torch.testing.assert_close(outputs.branch.logits(outputs.logits, None), -d)


def test_ii_pulls_to_the_means_of_the_batch_and_pushes_the_nearest_apart(wired):
    loss, outputs = wired("ii", alpha=2.0)
    value = loss(outputs, TARGET)[IN].mean()
    z = outputs.logits
    z = (z - z.mean(0)) / (z.var(0, unbiased=False) + 1e-5).sqrt()
    means = torch.stack([z[c == TARGET].mean(0) for c in range(K)])
    within = (z[IN] - means[TARGET[IN]]).square().sum(1).mean()
    apart = min(distance(means[i], means[j]) for i in range(K) for j in range(i))
    assert float(value) == pytest.approx(float(within) - 2 * apart, rel=1e-3)
    torch.testing.assert_close(outputs.branch.running.centers, means, rtol=1e-3, atol=1e-4)


def test_objectosphere_is_the_entropic_loss_and_the_lengths_of_features(wired):
    loss, outputs = wired("objectosphere", alpha=0.3, xi=2.0)
    log_p = outputs.logits.log_softmax(1)
    length = outputs.features.norm(dim=1)
    inside = -log_p[range(B), TARGET.clamp(min=0)] + 0.3 * (2 - length).relu() ** 2
    outside = -log_p.mean(1) + 0.3 * length**2
    torch.testing.assert_close(loss(outputs, TARGET), torch.where(IN, inside, outside))


def test_vos_with_outliers_separates_the_weighted_energies(wired):
    loss, outputs = wired("vos-reg", alpha=0.4)
    weights = outputs.branch.weights.weight.relu()
    energy = -(weights * outputs.logits.exp()).sum(1).log()
    z = outputs.branch.regression(energy[:, None])
    expected = F.cross_entropy(outputs.logits[IN], TARGET[IN])
    expected = expected + 0.4 * F.cross_entropy(z, IN.long())
    torch.testing.assert_close(loss(outputs, TARGET)[IN].mean(), expected)
    score = outputs.branch.own_score(outputs.logits, outputs.features)
    torch.testing.assert_close(score, z[:, 0] - z[:, 1], rtol=1e-4, atol=1e-4)


def test_vos_draws_outliers_once_its_queues_are_full(wired):
    loss, outputs = wired("vos", sample_number=2, sample_from=20)
    plain = F.cross_entropy(outputs.logits[IN], TARGET[IN])
    for _ in range(2):  # every class occurs at least once in the batch
        torch.testing.assert_close(loss(outputs, TARGET)[IN].mean(), plain)
    assert loss.counts.tolist() == [2] * K
    assert float(loss(outputs, TARGET)[IN].mean()) > float(plain)
    outputs.branch.eval()
    torch.testing.assert_close(loss(outputs, TARGET)[IN].mean(), plain)


def test_logits_of_another_number_of_classes_are_refused(wired):
    loss, outputs = wired("cac")
    with pytest.raises(ValueError, match="num_classes=4"):
        loss(outputs._replace(logits=torch.zeros(B, 3)), TARGET)
