"""OOD and misclassification metrics against scikit-learn, which is independent of pytorch-ood."""

import math

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from sklearn.metrics import auc, precision_recall_curve, roc_auc_score, roc_curve

from dpn_plugin.errors import UserError
from dpn_plugin.metrics import misclassification_metrics, ood_metrics, rejected_share


def reference(in_scores, out_scores):
    scores = np.concatenate([in_scores, out_scores]).astype(np.float64)
    ood = np.r_[np.zeros(len(in_scores)), np.ones(len(out_scores))]
    precision, recall, _ = precision_recall_curve(1 - ood, -scores)
    precision_out, recall_out, _ = precision_recall_curve(ood, scores)
    fpr, tpr, _ = roc_curve(ood, scores, drop_intermediate=False)
    return {
        "auroc": roc_auc_score(ood, scores),
        "aupr_in": auc(recall, precision),
        "aupr_out": auc(recall_out, precision_out),
        "fpr95": fpr[np.argmax(tpr >= 0.95)],
    }


def measured(in_scores, out_scores):
    return ood_metrics(torch.as_tensor(in_scores), torch.as_tensor(out_scores))


any_scores = st.lists(st.floats(-1e300, 1e300), min_size=1, max_size=40)
tied_scores = st.lists(st.integers(0, 3).map(float), min_size=1, max_size=40)


@given(any_scores, any_scores)
def test_arbitrary_scores_measure_as_in_scikit_learn(in_scores, out_scores):
    in_scores, out_scores = np.array(in_scores), np.array(out_scores)
    assert measured(in_scores, out_scores) == pytest.approx(
        reference(in_scores, out_scores), abs=1e-12
    )


@given(tied_scores, tied_scores)
def test_tied_scores_measure_as_in_scikit_learn(in_scores, out_scores):
    in_scores, out_scores = np.array(in_scores), np.array(out_scores)
    assert measured(in_scores, out_scores) == pytest.approx(
        reference(in_scores, out_scores), abs=1e-12
    )


@pytest.mark.parametrize("dtype", [np.float16, np.float32, np.float64])
def test_many_scores_measure_as_in_scikit_learn(dtype):
    random = np.random.default_rng(0)
    in_scores = random.normal(0, 1, 20_000).astype(dtype)
    out_scores = random.normal(1, 2, 5_000).astype(dtype)
    assert measured(in_scores, out_scores) == pytest.approx(
        reference(in_scores, out_scores), abs=1e-10
    )


def test_constant_scores_have_an_auroc_of_one_half():
    found = measured(np.ones(30), np.ones(10))
    assert found["auroc"] == 0.5
    assert found["fpr95"] == 1.0


def test_larger_scores_mean_ood():
    assert measured([0.0, 1.0], [2.0, 3.0]) == {
        "auroc": 1.0,
        "aupr_in": 1.0,
        "aupr_out": 1.0,
        "fpr95": 0.0,
    }
    assert measured([2.0, 3.0], [0.0, 1.0])["auroc"] == 0.0


@pytest.mark.parametrize("transform", [lambda s: 3 * s - 7, np.exp, np.arctan, lambda s: s**3])
def test_strictly_monotone_transforms_change_nothing(transform):
    random = np.random.default_rng(1)
    # a coarse grid, so that rounding creates no ties
    in_scores, out_scores = random.integers(-40, 40, 500) / 8, random.integers(-20, 60, 300) / 8
    assert measured(transform(in_scores), transform(out_scores)) == measured(in_scores, out_scores)


def test_scores_that_are_not_finite_are_counted_in_the_message():
    broken = torch.tensor([0.0, float("nan"), float("inf")])
    with pytest.raises(UserError, match=r"out_scores: 2 of 3"):
        ood_metrics(torch.zeros(4), broken)


def test_no_scores_are_refused():
    with pytest.raises(UserError, match="in_scores"):
        ood_metrics(torch.zeros(0), torch.zeros(3))


samples = st.lists(st.tuples(st.integers(0, 5), st.booleans()), min_size=2, max_size=50)


@given(samples.filter(lambda pairs: len({correct for _, correct in pairs}) == 2))
def test_misclassification_measures_as_scikit_learn_with_mistakes_as_positives(pairs):
    scores, correct = np.array(pairs).T
    precision, recall, _ = precision_recall_curve(correct == 0, scores)
    found = misclassification_metrics(torch.tensor(scores), torch.tensor(correct))
    assert found["auroc"] == pytest.approx(roc_auc_score(correct == 0, scores), abs=1e-12)
    assert found["aupr"] == pytest.approx(auc(recall, precision), abs=1e-12)


@pytest.mark.parametrize("correct", [True, False])
def test_figures_are_nan_if_all_samples_are_correct_or_none_is(correct):
    found = misclassification_metrics(torch.arange(5.0), torch.full((5,), correct))
    assert math.isnan(found["auroc"])
    assert math.isnan(found["aupr"])


def test_correct_of_another_shape_is_refused():
    with pytest.raises(UserError, match="correct has shape"):
        misclassification_metrics(torch.zeros(3), torch.ones(2, dtype=torch.bool))


@pytest.mark.parametrize(("n", "accepted"), [(100, 0.95), (40, 0.95), (7, 0.5), (3, 1.0), (1, 0.1)])
def test_the_threshold_accepts_the_share_of_in_domain_samples(n, accepted):
    rng = np.random.default_rng(n)
    inside, other = rng.integers(0, 30, n).astype(float), rng.integers(0, 40, 50).astype(float)
    # the lowest of all in-domain scores as threshold that accepts enough of them
    threshold = min(t for t in inside if np.mean(inside <= t) >= accepted)
    found = rejected_share(torch.tensor(inside), torch.tensor(other), accepted)
    assert found == np.mean(other > threshold)


def test_the_accepted_share_must_be_a_share():
    with pytest.raises(UserError, match="accepted must be above 0 and at most 1, not 0"):
        rejected_share(torch.ones(2), torch.ones(2), 0)
