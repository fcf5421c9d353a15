"""Properties of every loss: groups, reductions, shapes, types, gradients, extremes, errors."""

import copy

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from pytorch_ood.api import Representation, Task

import dpn_plugin
from dpn_plugin import losses
from dpn_plugin.errors import UserError
from dpn_plugin.losses import (
    BeliefMatchingLoss,
    DensityAwareLoss,
    EvidentialLoss,
    FisherEvidentialLoss,
    ForwardKLLoss,
    RelaxedEvidentialLoss,
    RepresentationGapLoss,
    ReverseKLLoss,
    RevisitedEvidentialLoss,
)
from dpn_plugin.losses.grouped import softened

pytestmark = pytest.mark.filterwarnings("ignore:Discarding samples")

CLASSES = [
    RepresentationGapLoss,
    ReverseKLLoss,
    ForwardKLLoss,
    EvidentialLoss,
    FisherEvidentialLoss,
    RelaxedEvidentialLoss,
    RevisitedEvidentialLoss,
    BeliefMatchingLoss,
    DensityAwareLoss,
]


def test_mean_averages_each_group_separately(supervised, logits, target):
    values = supervised(gamma=0.3, reduction="none")(logits, target)
    plain = supervised(gamma=1.0, reduction="none")(logits, target)
    ood = target < 0
    torch.testing.assert_close(values[ood], 0.3 * plain[ood])
    torch.testing.assert_close(values[~ood], plain[~ood])
    mean = supervised(gamma=0.3)(logits, target)
    torch.testing.assert_close(mean, plain[~ood].mean() + 0.3 * plain[ood].mean())
    total = supervised(gamma=0.3, reduction="sum")(logits, target)
    torch.testing.assert_close(total, values.sum())


def test_repeating_the_ood_samples_does_not_change_the_mean(supervised, logits, target):
    ood = target < 0
    more_logits = torch.cat([logits, logits[ood], logits[ood]])
    more_target = torch.cat([target, target[ood], target[ood]])
    loss = supervised()
    torch.testing.assert_close(loss(more_logits, more_target), loss(logits, target))


def test_a_group_that_is_absent_adds_nothing(any_loss, logits, target):
    loss = any_loss()
    ood = target < 0
    inside, outside = loss(logits[~ood], target[~ood]), loss(logits[ood], target[ood])
    torch.testing.assert_close(inside + outside, loss(logits, target))
    assert torch.isfinite(inside)
    assert torch.isfinite(outside)


@pytest.mark.parametrize("count", [0, 2])
def test_a_batch_without_in_domain_samples_keeps_the_graph(any_loss, count):
    z = torch.randn(count, 3, requires_grad=True)
    any_loss()(z, torch.full((count,), -1)).backward()
    assert torch.isfinite(z.grad).all()


def test_pixels_count_as_samples(any_loss, logits, target):
    image = logits.T.reshape(3, 2, 3)[None]
    labels = target.reshape(1, 2, 3)
    values = any_loss(reduction="none")(image, labels)
    flat = any_loss(reduction="none")(logits, target)
    torch.testing.assert_close(values, flat.reshape(1, 2, 3))
    torch.testing.assert_close(any_loss()(image, labels), any_loss()(logits, target))


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16])
def test_half_precision_is_computed_in_float32(any_loss, logits, target, dtype):
    half = logits.to(dtype).requires_grad_()
    value = any_loss()(half, target)
    assert value.dtype == torch.float32
    torch.testing.assert_close(value, any_loss()(half.detach().float(), target))
    value.backward()
    assert half.grad.dtype == dtype
    assert torch.isfinite(half.grad).all()


@pytest.mark.parametrize("dtype", [torch.uint8, torch.int32, torch.int64])
def test_any_integer_type_holds_labels(any_loss, logits, dtype):
    labels = torch.tensor([0, 1, 2, 2, 1, 0])
    assert any_loss()(logits, labels.to(dtype)) == any_loss()(logits, labels)


@pytest.mark.parametrize("reduction", ["mean", "none"])
def test_gradients_agree_with_finite_differences(any_loss, logits, target, reduction):
    loss = any_loss(reduction=reduction)
    z = logits.clone().requires_grad_()
    assert torch.autograd.gradcheck(lambda z: loss(z, target), z)


def test_gradients_agree_without_evidence_and_beyond_the_bound(any_loss):
    z = torch.tensor([[-2.0, -1.0, -3.0], [-70.0, -64.0, -80.0], [63.0, 66.0, -65.0]])
    z = z.double().requires_grad_()
    loss = any_loss(reduction="none")
    scale = loss(z, torch.tensor([0, 0, 0])).detach().clamp(min=1)

    def scaled(z):
        return loss(z, torch.tensor([0, 0, 0])) / scale

    assert torch.autograd.gradcheck(scaled, z, atol=1e-5, rtol=1e-3)


@settings(max_examples=20, deadline=None)
@given(
    st.lists(st.lists(st.floats(-40, 40), min_size=3, max_size=3), min_size=1, max_size=5),
    st.permutations([0, 1, 2]),
    st.data(),
)
def test_renaming_the_classes_changes_nothing(rows, order, data):
    labels = data.draw(st.lists(st.integers(-1, 2), min_size=len(rows), max_size=len(rows)))
    z, y = torch.tensor(rows, dtype=torch.float64), torch.tensor(labels)
    renamed = torch.where(y < 0, y, torch.tensor(order).argsort()[y.clamp(min=0)])
    for loss in (losses.dpn_plus(3), ReverseKLLoss(), ForwardKLLoss(), EvidentialLoss()):
        torch.testing.assert_close(loss(z[:, order], renamed), loss(z, y), rtol=1e-7, atol=1e-9)


@pytest.mark.parametrize("size", [60.0, 61.0, 1e3, 1e4])
@pytest.mark.parametrize(
    "signs", [[1, -1, -1], [-1, -1, 1], [1, 1, 1], [-1, -1, -1], [-1, 0, 0], [1, 0, 0], [0, 1, -1]]
)
def test_extreme_logits_give_no_nan_and_no_zero_gradient(any_loss, signs, size):
    z = (size * torch.tensor([signs], dtype=torch.float32)).requires_grad_()
    value = any_loss()(z, torch.tensor([1]))
    value.backward()
    assert torch.isfinite(value)
    assert torch.isfinite(z.grad).all()
    if signs != [0, 1, -1]:  # where the right class wins by far, there is nothing to learn
        assert z.grad.abs().max() > 0


@pytest.mark.parametrize("size", [1e3, -1e3, 1e4, -1e4])
def test_extreme_ood_samples_have_a_gradient_towards_zero(size):
    for loss in (ReverseKLLoss(), ForwardKLLoss()):
        z = torch.full((1, 3), size, requires_grad=True)
        loss(z, torch.tensor([-1])).backward()
        assert torch.isfinite(z.grad).all()
        assert (z.grad.sign() == torch.tensor(size).sign()).all()


def test_compiled_and_plain_agree_in_every_epoch(logits, target):
    gap, evidential = losses.dpn_minus(3), EvidentialLoss("mse", "softplus", annealing_epochs=12)
    for loss in (gap, ReverseKLLoss(), evidential):
        compiled = torch.compile(loss, backend="eager", fullgraph=True)
        torch.testing.assert_close(compiled(logits, target), loss(logits, target))
    for epoch in range(12):  # more epochs than the limit of recompilations
        evidential.set_epoch(epoch)
        torch.testing.assert_close(compiled(logits, target), evidential(logits, target))


def test_a_loss_has_no_state_to_save(any_loss):
    assert not any_loss().state_dict()
    assert repr(copy.deepcopy(any_loss())) == repr(any_loss())


@pytest.mark.parametrize("kind", CLASSES)
def test_info_is_correct(kind, logits, target):
    assert "info" in vars(kind)
    assert kind.info.tasks == {Task.CLASSIFICATION, Task.SEGMENTATION}
    assert kind.info.inputs == {Representation.LOGITS}
    assert kind.info.paper.title.split(":")[0].lower() in " ".join(kind.__doc__.split()).lower()
    loss = kind(0.5, -0.5) if kind is RepresentationGapLoss else kind()
    ood = logits[target < 0].requires_grad_()
    loss(ood, target[target < 0]).backward()
    assert bool(ood.grad.any()) == kind.info.supervised


@pytest.mark.parametrize(
    ("bad", "error", "message"),
    [
        (torch.tensor([[0.0, float("nan")]]), ValueError, "logits must be finite"),
        (torch.tensor([[0.0, float("inf")]]), ValueError, "logits must be finite"),
        (torch.zeros(1, 1), ValueError, "at least 2 classes, not 1"),
        (torch.zeros(1, 2, 3), ValueError, r"not \(1, 2, 3\)"),
        (torch.zeros(1, 2, dtype=torch.int64), TypeError, "floating point, not torch.int64"),
        ([[0.0, 1.0]], TypeError, "logits must be a torch.Tensor, not list"),
    ],
)
def test_bad_logits_are_refused(any_loss, bad, error, message):
    with pytest.raises(error, match=message):
        any_loss()(bad, torch.tensor([0]))


@pytest.mark.parametrize(
    ("bad", "error", "message"),
    [
        (torch.tensor([0, 3]), ValueError, "target holds 3, but the logits have 3 classes.*0 to 2"),
        (torch.tensor([0.0, 1.0]), TypeError, "target must hold integers, not torch.float32"),
        (torch.tensor([True, False]), TypeError, "integers, not torch.bool"),
        (torch.tensor([0, 1, 2]), ValueError, r"target must have shape \(2,\).*not \(3,\)"),
        (torch.tensor([[0], [1]]), ValueError, r"not \(2, 1\)"),
        ([0, 1], TypeError, "target must be a torch.Tensor, not list"),
    ],
)
def test_bad_targets_are_refused(any_loss, bad, error, message):
    with pytest.raises(error, match=message):
        any_loss()(torch.zeros(2, 3), bad)


def test_an_unknown_reduction_is_refused_with_the_known_ones(any_loss):
    with pytest.raises(ValueError, match="reduction must be 'mean', 'sum' or 'none', not 'avg'"):
        any_loss(reduction="avg")
    with pytest.raises(TypeError, match="lambda_ou"):
        any_loss(lambda_ou=2)


@pytest.mark.parametrize(
    ("gamma", "error"),
    [(0, ValueError), (-1, ValueError), (float("nan"), ValueError), ("1", TypeError)],
)
def test_gamma_must_be_a_positive_number(supervised, gamma, error):
    with pytest.raises(error, match="gamma"):
        supervised(gamma=gamma)


def test_softened_is_the_identity_inside_the_bound():
    z = torch.linspace(-60, 60, 241)
    assert torch.equal(softened(z), z)


@pytest.mark.parametrize("z", [60.5, 75.0, 1e3])
def test_beyond_the_bound_the_concentration_follows_the_tangent_and_its_reciprocal(z):
    tangent = torch.tensor(60.0).double().exp() * (1 + z - 60)
    both = softened(torch.tensor([z, -z], dtype=torch.float64)).exp()
    torch.testing.assert_close(both, torch.stack([tangent, 1 / tangent]))


def test_the_slope_of_softened_is_continuous_and_never_zero():
    z = torch.tensor([59.9, 60, 60.001, 1e4, -60, -60.001, -1e4, 0], requires_grad=True)
    softened(z).sum().backward()
    expected = torch.tensor([1, 1, 1 / 1.001, 1 / 9941, 1, 1 / 1.001, 1 / 9941, 1])
    torch.testing.assert_close(z.grad, expected, rtol=1e-4, atol=0)


@pytest.mark.parametrize(
    "name", ["edl", "i-edl", "oe", "dpn-fwd", "dpn-rev", "dpn-plus", "dpn-minus-anchored"]
)
@pytest.mark.parametrize("columns", [4, 6])
def test_logits_of_another_width_than_num_classes_are_refused(name, columns):
    loss = dpn_plugin.create_loss(name, num_classes=5)
    message = f"The logits have {columns} classes .*created with num_classes=5"
    with pytest.raises(UserError, match=message):
        loss(torch.zeros(2, columns), torch.tensor([0, -1]))
    with pytest.raises(UserError, match=message):
        loss(torch.zeros(2, columns, 3, 3), torch.zeros(2, 3, 3).long())
    assert torch.isfinite(loss(torch.zeros(2, 5), torch.tensor([0, -1])))


def test_a_loss_without_num_classes_takes_any_width():
    for columns in (2, 7):
        assert torch.isfinite(ForwardKLLoss()(torch.zeros(1, columns), torch.tensor([0])))


def test_num_classes_must_be_an_integer_of_two_or_more():
    with pytest.raises(UserError, match="num_classes must be at least 2, not 1"):
        EvidentialLoss(num_classes=1)
