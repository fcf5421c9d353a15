"""The anchored precision: its value and gradient, and what it leaves free."""

import math

import mpmath
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

import dpn_plugin
from dpn_plugin.errors import UserError, UserTypeError
from dpn_plugin.losses import (
    RepresentationGapLoss,
    dpn_minus,
    dpn_minus_anchored,
    dpn_plus,
    dpn_plus_anchored,
)

OPTIONS = {"lambda_in": 1.5, "lambda_out": -0.25, "gamma": 0.7}
ANCHOR = {"anchor": 0.05, "log_precision_in": 4.5, "log_precision_out": -1.25}
#: rows of any size, labels in-domain and OOD
ROWS = [[0.3, -1.2, 2.5], [30.0, -40.0, 12.0], [-25.0, -25.5, -24.0], [55.0, 55.0, 54.0]]
LABELS = [2, 1, -1, -1]


def exact(rows, labels):
    """The mean loss with 50 digits."""
    inside, outside = [], []
    for row, label in zip(rows, labels, strict=True):
        alpha = [mpmath.exp(z) for z in row]
        log_alpha0 = mpmath.log(mpmath.fsum(alpha))
        sigmoid = mpmath.fsum(1 / (1 + mpmath.exp(-z)) for z in row) / len(row)
        if label >= 0:
            goal, fit = mpmath.mpf(4.5), row[label] - log_alpha0
            inside.append(-fit - 1.5 * sigmoid + 0.05 * (log_alpha0 - goal) ** 2)
        else:
            goal, fit = mpmath.mpf(-1.25), mpmath.fsum(row) / len(row) - log_alpha0
            outside.append(-fit + 0.25 * sigmoid + 0.05 * (log_alpha0 - goal) ** 2)
    return mpmath.fsum(inside) / len(inside) + 0.7 * mpmath.fsum(outside) / len(outside)


def exact_gradient(rows, labels):
    """Its derivative by every logit, by central differences with 50 digits."""
    step = mpmath.mpf(10) ** -15
    gradient = []
    for i, row in enumerate(rows):
        for c in range(len(row)):
            high, low = ([list(each) for each in rows] for _ in range(2))
            high[i][c] += step
            low[i][c] -= step
            gradient.append(float((exact(high, labels) - exact(low, labels)) / (2 * step)))
    return torch.tensor(gradient, dtype=torch.float64).view(len(rows), -1)


def test_value_and_gradient_are_exact():
    with mpmath.workdps(50):
        rows = [[mpmath.mpf(z) for z in row] for row in ROWS]
        value, gradient = float(exact(rows, LABELS)), exact_gradient(rows, LABELS)
    z = torch.tensor(ROWS, dtype=torch.float64, requires_grad=True)
    found = RepresentationGapLoss(**OPTIONS, **ANCHOR)(z, torch.tensor(LABELS))
    found.backward()
    assert found.item() == pytest.approx(value, rel=1e-13)
    torch.testing.assert_close(z.grad, gradient, rtol=1e-12, atol=1e-15)


rows_of_logits = st.lists(st.floats(-50, 50), min_size=2, max_size=6)


@settings(max_examples=100, deadline=None)
@given(rows_of_logits, st.integers(-1, 1), st.floats(-10, 10), st.floats(-10, 10))
def test_a_shift_meets_the_target_and_keeps_the_cross_entropy(row, label, t_in, t_out):
    targets = {"log_precision_in": t_in, "log_precision_out": t_out}
    z, y = torch.tensor([row], dtype=torch.float64), torch.tensor([label])
    shifted = z + (t_in if label >= 0 else t_out) - z.logsumexp(dim=1, keepdim=True)
    anchored = RepresentationGapLoss(0, 0, anchor=1.0, **targets)
    plain = RepresentationGapLoss(0, 0)
    torch.testing.assert_close(shifted.softmax(1), z.softmax(1), rtol=1e-11, atol=0)
    torch.testing.assert_close(plain(shifted, y), plain(z, y), rtol=1e-11, atol=1e-12)
    torch.testing.assert_close(anchored(shifted, y), plain(z, y), rtol=1e-11, atol=1e-12)


@pytest.mark.parametrize("label", [1, -1])
def test_the_minimum_over_shifts_is_finite_with_the_anchor_only(label):
    shift = torch.linspace(-60, 60, 1201, dtype=torch.float64)
    z = torch.tensor([0.5, 2.0, -1.0], dtype=torch.float64) + shift.unsqueeze(1)
    y = torch.full((len(shift),), label)
    plain = dpn_plus(3, reduction="none")(z, y)
    anchored = dpn_plus_anchored(3, reduction="none")(z, y)
    assert plain.argmin() > 900  # it still falls where the sigmoids saturate
    assert 400 < anchored.argmin() < 800


@pytest.mark.parametrize(("preset", "ood"), [(dpn_plus_anchored, 1.0), (dpn_minus_anchored, 0.1)])
@pytest.mark.parametrize("classes", [2, 10, 1000])
def test_the_gap_between_the_targets_does_not_depend_on_the_number_of_classes(preset, ood, classes):
    loss = preset(classes)
    assert loss.anchor > 0
    assert loss.log_precision_out == pytest.approx(math.log(ood * classes))
    assert loss.log_precision_in - loss.log_precision_out == pytest.approx(math.log(100 / ood))


@pytest.mark.parametrize(
    ("plain", "anchored"), [(dpn_plus, dpn_plus_anchored), (dpn_minus, dpn_minus_anchored)]
)
def test_the_anchored_presets_are_the_papers_with_an_anchor(plain, anchored):
    found, paper = anchored(7), plain(7)
    for name in ("lambda_in", "lambda_out", "gamma", "reduction", "num_classes"):
        assert getattr(found, name) == getattr(paper, name)
    assert paper.anchor == 0
    assert repr(plain(7, anchor=found.anchor)) == repr(found)
    given_all = anchored(7, anchor=0.3, log_precision_in=5.0, log_precision_out=-2.0)
    assert repr(plain(7, anchor=0.3, log_precision_in=5.0, log_precision_out=-2.0)) == repr(
        given_all
    )


@pytest.mark.parametrize("name", ["dpn-plus", "dpn-minus"])
def test_without_weight_the_anchored_loss_is_the_papers(name, logits, target):
    anchored = dpn_plugin.create_loss(f"{name}-anchored", num_classes=3, anchor=0)
    assert anchored(logits, target) == dpn_plugin.create_loss(name, num_classes=3)(logits, target)


def test_an_anchor_without_targets_is_refused():
    with pytest.raises(UserError, match=r"An anchor of 0.1 needs log_precision_out"):
        RepresentationGapLoss(0.5, 0.5, anchor=0.1, log_precision_in=2)


def test_targets_without_an_anchor_are_refused():
    with pytest.raises(UserError, match=r"log_precision_in=2 has no effect without an anchor"):
        dpn_plus(3, log_precision_in=2)


@pytest.mark.parametrize(
    ("options", "error", "message"),
    [
        ({"anchor": -0.1}, UserError, "anchor must be a finite number of 0 or more, not -0.1"),
        ({"anchor": "1"}, UserTypeError, "anchor must be a number, not str"),
        ({"log_precision_out": math.inf}, UserError, "log_precision_out must be a finite number"),
    ],
)
def test_bad_options_are_named(options, error, message):
    with pytest.raises(error, match=message):
        dpn_minus_anchored(3, **options)
