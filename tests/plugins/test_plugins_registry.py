"""Listing, finding and making by name, with the package's own entries."""

import pytest
import torch

import dpn_plugin
from dpn_plugin.errors import UserError
from dpn_plugin.plugins.hookspecs import KINDS, Entry
from dpn_plugin.plugins.manager import plugins
from dpn_plugin.plugins.registry import entries, find, load


def test_names_are_sorted_and_unique() -> None:
    names = dpn_plugin.list_detectors()
    assert names == sorted(set(names))


@pytest.mark.parametrize("kind", KINDS)
def test_every_kind_can_be_listed_by_its_own_function(kind: str) -> None:
    listed = getattr(dpn_plugin, f"list_{kind}")()
    assert listed == [entry.name for entry in entries(kind)]


def test_wildcards_filter_names_in_any_case() -> None:
    assert dpn_plugin.list_losses("DPN-*") == ["dpn-fwd", "dpn-minus", "dpn-plus", "dpn-rev"]
    assert dpn_plugin.list_losses("?e") == ["ce", "oe"]
    assert dpn_plugin.list_detectors("[mM]s[p]") == ["max-softmax"]  # by its alias


def test_every_entry_is_found_by_name_and_by_alias_in_any_case() -> None:
    for kind in KINDS:
        for entry in entries(kind):
            for name in (entry.name, *entry.aliases):
                assert find(kind, name.upper()) == entry


@pytest.mark.parametrize(
    ("name", "nearest"), [("dpn-mutual", "dpn-mi"), ("energy-base", "energy-based"), ("mps", "msp")]
)
def test_an_unknown_name_is_answered_with_the_nearest(name: str, nearest: str) -> None:
    with pytest.raises(UserError, match=f"Unknown detector '{name}'.*'{nearest}'"):
        dpn_plugin.create_detector(name)


def test_an_unknown_kind_is_answered_with_the_nearest() -> None:
    with pytest.raises(UserError, match="'detectors'"):
        entries("detector")


def test_built_ins_have_no_failures() -> None:
    own = [failure for failure in plugins().failures if failure.package == "dpn-plugin"]
    assert not own


@pytest.mark.parametrize(
    ("alias", "class_name"),
    [("msp", "MaxSoftmax"), ("energy", "EnergyBased"), ("mls", "MaxLogit"), ("OpenMax", "OpenMax")],
)
def test_detectors_of_the_host_score_logits_without_a_model(alias: str, class_name: str) -> None:
    assert type(dpn_plugin.create_detector(alias)).__name__ == class_name


def test_options_reach_the_detector() -> None:
    logits = torch.randn(4, 3)
    warm = dpn_plugin.create_detector("energy", t=2.0).predict_logits(logits)
    torch.testing.assert_close(warm, -2.0 * torch.logsumexp(logits / 2.0, dim=1))


def test_the_model_reaches_the_detector() -> None:
    model = torch.nn.Identity()
    assert dpn_plugin.create_detector("msp", model).model is model


def test_a_detector_of_features_can_be_made_without_an_encoder() -> None:
    assert dpn_plugin.create_detector("knn", k=3).encoder is None


def test_options_that_a_detector_hands_on_are_accepted() -> None:
    assert dpn_plugin.create_detector("knn", algorithm="brute").k == 50


def test_a_model_is_no_encoder() -> None:
    with pytest.raises(TypeError, match=r"'knn' takes no model.*encoder"):
        dpn_plugin.create_detector("knn", torch.nn.Identity())


def test_an_unknown_option_is_named_with_the_allowed_and_the_nearest() -> None:
    with pytest.raises(TypeError, match=r"'gen' has no option 'gama'\. Did you mean 'gamma'\?.* M"):
        dpn_plugin.create_detector("gen", gama=0.2)


def test_missing_options_are_named() -> None:
    with pytest.raises(TypeError, match="'vim' needs d and w and b"):
        dpn_plugin.create_detector("vim")


def test_a_loss_that_needs_no_classes_may_be_given_them() -> None:
    logits, target = torch.randn(5, 10), torch.arange(5)
    loss = dpn_plugin.create_loss("ce", num_classes=10)
    expected = torch.nn.functional.cross_entropy(logits, target)
    torch.testing.assert_close(loss(logits, target), expected)


def test_a_loss_that_needs_classes_says_so() -> None:
    with pytest.raises(TypeError, match="'dpn-minus' needs num_classes"):
        dpn_plugin.create_loss("dpn-minus")


@pytest.mark.parametrize("name", dpn_plugin.list_losses())
def test_every_loss_can_be_made_by_name(name: str) -> None:
    loss = dpn_plugin.create_loss(name, num_classes=4)
    target = torch.tensor([0, 3, 1])
    assert torch.isfinite(loss(torch.randn(3, 4), target))


def test_what_cannot_be_imported_is_blamed_on_its_package(monkeypatch: pytest.MonkeyPatch) -> None:
    found = plugins().entries("losses")
    source = found["ce"][1]
    broken = Entry("broken", "no_such_package.module:Name", "cannot be imported")
    monkeypatch.setitem(found, "broken", (broken, source))
    with pytest.raises(UserError, match=r"'broken'.*dpn-plugin 0\..*no_such_package"):
        load("losses", "broken")


def test_a_factory_in_a_string_is_imported_on_first_use() -> None:
    import json

    assert Entry("dumps", "json:dumps", "JSON").resolve() is json.dumps
    assert Entry("dumps", json.dumps, "JSON").resolve() is json.dumps


@pytest.mark.parametrize(
    "arguments",
    [
        {"name": "two words"},
        {"name": ""},
        {"name": "wild*"},
        {"name": 3},
        {"factory": "no_colon"},
        {"factory": "module:"},
        {"summary": None},
        {"aliases": "msp"},
        {"aliases": ("with space",)},
    ],
)
def test_an_entry_refuses_what_could_not_be_found_again(arguments: dict) -> None:
    with pytest.raises((TypeError, ValueError), match="Entry"):
        Entry(**{"name": "n", "factory": dict, "summary": "s", **arguments})
