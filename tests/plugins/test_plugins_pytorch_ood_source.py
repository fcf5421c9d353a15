"""The detectors read from pytorch-ood's source are those of the package."""

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pytorch_ood import api, detector

from dpn_plugin.plugins.host_source import kebab_case
from dpn_plugin.plugins.pytorch_ood_source import dpn_detectors

ENTRIES = list(dpn_detectors())


def test_every_detector_of_the_host_is_listed_and_nothing_else() -> None:
    exported = (getattr(detector, name) for name in vars(detector))
    host_detectors = {
        each
        for each in exported
        if isinstance(each, type)
        and issubclass(each, api.Detector)
        and each.__module__.startswith("pytorch_ood.detector")
    }
    assert len(host_detectors) >= 35
    assert {entry.resolve() for entry in ENTRIES} == host_detectors


@pytest.mark.parametrize("entry", ENTRIES, ids=lambda entry: entry.name)
def test_the_summary_is_the_title_of_the_paper(entry) -> None:
    info = getattr(entry.resolve(), "info", None)
    if info is not None and info.paper is not None:
        assert entry.summary == info.paper.title
    else:
        assert entry.summary.startswith("Implements")


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("MaxSoftmax", "max-softmax"),
        ("KLMatching", "kl-matching"),
        ("MahalanobisODIN", "mahalanobis-odin"),
        ("WeightedEBO", "weighted-ebo"),
        ("ODIN", "odin"),
        ("ViM", "vim"),
        ("fDBD", "fdbd"),
        ("ReAct", "react"),
        ("NNGuide", "nnguide"),
    ],
)
def test_names_are_the_words_of_the_class(name: str, expected: str) -> None:
    assert kebab_case(name) == expected


@given(st.lists(st.from_regex("[A-Z][a-z0-9]+", fullmatch=True), min_size=1, max_size=4))
def test_capitalised_words_are_split_where_they_were_joined(words: list[str]) -> None:
    assert kebab_case("".join(words)) == "-".join(words).lower()
