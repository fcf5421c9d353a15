"""Misclassification detection against scikit-learn."""

import math

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from sklearn.metrics import auc, precision_recall_curve, roc_auc_score

from dpn_plugin.errors import UserError
from dpn_plugin.metrics import misclassification_metrics

samples = st.lists(st.tuples(st.integers(0, 5), st.booleans()), min_size=2, max_size=50)


@given(samples.filter(lambda pairs: len({correct for _, correct in pairs}) == 2))
def test_it_measures_as_scikit_learn_with_mistakes_as_positives(pairs):
    scores, correct = np.array(pairs).T
    precision, recall, _ = precision_recall_curve(correct == 0, scores)
    found = misclassification_metrics(torch.tensor(scores), torch.tensor(correct))
    assert found["auroc"] == pytest.approx(roc_auc_score(correct == 0, scores), abs=1e-12)
    assert found["aupr"] == pytest.approx(auc(recall, precision), abs=1e-12)


@pytest.mark.parametrize("correct", [True, False])
def test_there_is_no_figure_where_all_are_alike(correct):
    found = misclassification_metrics(torch.arange(5.0), torch.full((5,), correct))
    assert math.isnan(found["auroc"])
    assert math.isnan(found["aupr"])


def test_shapes_that_differ_are_refused():
    with pytest.raises(UserError, match="correct has shape"):
        misclassification_metrics(torch.zeros(3), torch.ones(2, dtype=torch.bool))
