"""Listing, finding and creating by name, with the package's own entries."""

import subprocess
import sys

import pytest
import torch

import dpn_plugin
from dpn_plugin.errors import UserError, UserTypeError
from dpn_plugin.losses import FeatureLoss
from dpn_plugin.plugins import KINDS, Entry, check_options, plugins
from dpn_plugin.plugins.registry import entries, find, load
from dpn_plugin.testing.loss_case import network_outputs


def test_names_are_sorted_and_unique() -> None:
    names = dpn_plugin.list_detectors()
    assert names == sorted(set(names))


@pytest.mark.parametrize("kind", KINDS)
def test_every_kind_can_be_listed_by_its_own_function(kind: str) -> None:
    listed = getattr(dpn_plugin, f"list_{kind}")()
    assert listed == [entry.name for entry in entries(kind)]


def test_wildcards_filter_names_in_any_case() -> None:
    anchored = ["dpn-minus-anchored", "dpn-plus-anchored"]
    found = dpn_plugin.list_losses("DPN-*")
    assert found == sorted(["dpn-fwd", "dpn-minus", "dpn-plus", "dpn-rev", *anchored])
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
def test_the_error_for_an_unknown_name_has_the_nearest(name: str, nearest: str) -> None:
    with pytest.raises(UserError, match=f"Unknown detector '{name}'.*'{nearest}'"):
        dpn_plugin.create_detector(name)


def test_the_error_for_an_unknown_kind_has_the_nearest() -> None:
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


def test_a_detector_of_features_can_be_created_without_an_encoder() -> None:
    assert dpn_plugin.create_detector("knn", k=3).encoder is None


def test_options_that_a_detector_passes_on_are_accepted() -> None:
    assert dpn_plugin.create_detector("knn", algorithm="brute").k == 50


def test_a_model_of_logits_is_not_an_encoder() -> None:
    with pytest.raises(TypeError, match=r"'knn' takes no model.*encoder"):
        dpn_plugin.create_detector("knn", torch.nn.Identity())


def test_an_unknown_option_is_named_with_the_allowed_and_the_nearest() -> None:
    with pytest.raises(TypeError, match=r"'gen' has no option 'gama'\. Did you mean 'gamma'\?.* M"):
        dpn_plugin.create_detector("gen", gama=0.2)


def test_missing_options_are_named() -> None:
    with pytest.raises(TypeError, match="'vim' needs d and w and b"):
        dpn_plugin.create_detector("vim")


def load_data(argument: str, *, split: str, root: str, size: int, noise: float = 0.0) -> None:
    """A factory whose first three arguments the caller fills."""


RESERVED = ("argument", "split", "root")


def test_reserved_options_are_neither_allowed_nor_missing() -> None:
    options = {"size": 3}
    assert check_options("Source 'x'", load_data, options, reserved=RESERVED) == options
    with pytest.raises(UserTypeError) as caught:
        check_options("Source 'x'", load_data, {"root": "/"}, reserved=RESERVED)
    assert str(caught.value) == "Source 'x' has no option 'root'. Its options are size, noise."
    with pytest.raises(UserTypeError, match=r"needs size\. Its options are size, noise\."):
        check_options("Source 'x'", load_data, {}, reserved=RESERVED)


def test_reserved_options_are_refused_also_by_a_factory_that_takes_any() -> None:
    with pytest.raises(UserTypeError, match=r"'x' has no option 'root'\.$"):
        check_options("'x'", lambda **options: None, {"other": 1, "root": "/"}, reserved=["root"])


def test_num_classes_is_dropped_for_a_loss_that_does_not_take_it() -> None:
    logits, target = torch.randn(5, 10), torch.arange(5)
    loss = dpn_plugin.create_loss("ce", num_classes=10)
    expected = torch.nn.functional.cross_entropy(logits, target)
    torch.testing.assert_close(loss(logits, target), expected)


def test_a_missing_num_classes_is_named() -> None:
    with pytest.raises(TypeError, match="'dpn-minus' needs num_classes"):
        dpn_plugin.create_loss("dpn-minus")


# energy-margin cannot be created without the loss of a network that was trained before
@pytest.mark.parametrize("name", [n for n in dpn_plugin.list_losses() if n != "energy-margin"])
def test_every_loss_can_be_created_by_name(name: str) -> None:
    loss = dpn_plugin.create_loss(name, num_classes=5)
    logits, target = torch.randn(3, getattr(loss, "columns", 5)), torch.tensor([0, 3, 1])
    outputs = network_outputs(loss, logits) if isinstance(loss, FeatureLoss) else logits
    assert torch.isfinite(loss(outputs, target))


def test_an_import_error_names_the_package_of_the_entry(monkeypatch: pytest.MonkeyPatch) -> None:
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
def test_an_entry_refuses_invalid_names_and_types(arguments: dict) -> None:
    with pytest.raises((TypeError, ValueError), match="Entry"):
        Entry(**{"name": "n", "factory": dict, "summary": "s", **arguments})


def test_completion_finds_all_public_names() -> None:
    listed = run_python("import dpn_plugin; print(*dir(dpn_plugin))").split()
    assert listed == sorted(dpn_plugin.__all__)
    assert {"create_detector", "create_loss", "functional", "list_detectors"} <= set(listed)


def run_python(program: str) -> str:
    """Return what a program prints in a new process, where nothing is imported yet."""
    command = [sys.executable, "-c", program]
    return subprocess.run(command, check=True, capture_output=True, text=True).stdout
