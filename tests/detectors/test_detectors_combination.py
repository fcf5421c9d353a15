"""Names of combined detectors: aliases, wildcards, and the nearest match for a mistake."""

import pytest

from dpn_plugin.detectors import parse_combination
from dpn_plugin.errors import UserError


@pytest.mark.parametrize(
    ("text", "name"),
    [
        ("fisher(dpn-mi,knn)", "fisher(dpn-mi,knn)"),
        (" Fisher( DPN-MI , KNN ) ", "fisher(dpn-mi,knn)"),
        ("fisher(energy,knn,knn)", "fisher(energy-based,knn)"),
        ("fisher(dpn-m*)", "fisher(dpn-maxp,dpn-mi)"),
    ],
)
def test_members_get_their_full_names(text, name):
    assert parse_combination(text).name == name


def test_other_names_are_not_combinations():
    assert parse_combination("dpn-mi") is None


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("fisher(dpn-mi,kn)", "Unknown detector 'kn'. Did you mean 'knn'"),
        (
            "fischer(dpn-mi,knn)",
            "Unknown combination of detectors 'fischer'. Did you mean 'fisher'",
        ),
        ("fisher(dpn-mi)", "needs at least two detectors"),
        ("fisher(knn,knn)", "needs at least two detectors"),
        ("fisher()", "needs at least two detectors"),
        ("fisher(dpn-mi,knn", "is not a combination of detectors such as"),
        ("fisher(fisher(knn,vim),dpn-mi)", "is not a combination of detectors such as"),
        ("fisher(no-*,knn)", "No detector matches 'no-*'"),
    ],
)
def test_mistakes_are_named(text, message):
    with pytest.raises(UserError) as caught:
        parse_combination(text)
    assert message in str(caught.value)
