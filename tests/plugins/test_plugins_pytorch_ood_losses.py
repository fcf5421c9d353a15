"""The losses read from pytorch-ood's source are those of the package, and have methods."""

import ast
import inspect

import pytest
from pytorch_ood import loss as host

from dpn_plugin.errors import UserError
from dpn_plugin.plugins import registry
from dpn_plugin.plugins.pytorch_ood_losses import (
    NOT_TRAINED,
    UNKNOWN,
    dpn_losses,
    dpn_methods,
    loss_name,
    why_not_trained,
)

CLASSES = [name for name, each in vars(host).items() if inspect.isclass(each)]
HOST = [name for name in CLASSES if vars(host)[name].__module__.startswith("pytorch_ood.loss")]


def test_every_loss_of_the_host_can_be_found_by_the_name_of_its_class() -> None:
    assert len(HOST) >= 17
    for name in HOST:
        assert registry.is_known("losses", name)


def test_every_loss_is_a_method_or_has_a_reason() -> None:
    methods = {entry.name for entry in dpn_methods()}
    for name in HOST:
        known = registry.is_known("methods", loss_name(name))
        assert known == (name not in NOT_TRAINED)
    assert {entry.name for entry in dpn_losses()} - methods == {"energy-margin"}


@pytest.mark.parametrize("entry", list(dpn_losses()), ids=lambda entry: entry.name)
def test_the_summary_of_a_loss_is_the_title_of_its_paper(entry) -> None:
    assert entry.summary == entry.resolve().info.paper.title


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("LogitNorm", "logit-norm"),
        ("EntropicOpenSetLoss", "entropic-open-set"),
        ("VOSRegLoss", "vos-reg"),
        ("VirtualOutlierSynthesizingRegLoss", "vos"),
        ("DeepSVDDLoss", "deep-svdd"),
    ],
)
def test_names_of_losses_are_the_words_of_the_class(name: str, expected: str) -> None:
    assert loss_name(name) == expected


def test_names_of_the_host_do_not_replace_ours() -> None:
    assert registry.find("losses", "oe").factory == "dpn_plugin.losses:outlier_exposure"
    assert registry.find("losses", "cross-entropy").name == "ce"
    assert registry.find("losses", "OutlierExposureLoss").name == "outlier-exposure"


@pytest.mark.parametrize(
    ("source", "reason"),
    [
        ("def __init__(self, t=1): pass\n def forward(self, logits, target): pass", None),
        ("def __init__(self, t): pass\n def forward(self, logits, target): pass", UNKNOWN),
        ("def __init__(self, t=1): pass\n def forward(self, features, target): pass", UNKNOWN),
        ("def __init__(self, t=1): pass\n def forward(self, logits, features, y): pass", UNKNOWN),
        ("pass", UNKNOWN),
    ],
)
def test_a_new_loss_is_a_method_if_it_reads_logits_and_labels_alone(source, reason) -> None:
    node = ast.parse(f"class NewLoss:\n {source}").body[0]
    assert why_not_trained("NewLoss", node) == reason


def test_a_loss_without_a_method_says_why() -> None:
    with pytest.raises(UserError, match="No method trains with the loss 'energy-margin'"):
        registry.find("methods", "scone")
