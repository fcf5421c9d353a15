"""A sample of ``tox -e backbones``, which tries one model of each of timm's modules."""

import pytest
import timm

from benchmark_suites.backbones.models import MODELS, SAMPLE, modules
from benchmark_suites.backbones.rows import check
from benchmark_suites.backbones.table import page
from dpn_plugin.backbones import create_backbone
from dpn_plugin.detectors import why_not_applicable


@pytest.mark.parametrize("module", SAMPLE)
def test_a_model_of_the_module_can_be_trained_and_evaluated(module: str) -> None:
    if module not in modules():
        pytest.skip("timm is older than this module")
    row = check(module, MODELS[module])
    assert row.reason == ""
    assert row.features > 0
    assert row.applicable > 15
    assert f"| {module} | `{MODELS[module]}` | {row.pixels} |" in page([row], 40, "1")


def test_the_table_names_models_of_their_modules() -> None:
    known = set(modules())
    for module, model in MODELS.items():
        if module in known:
            assert model in timm.list_models(module=module)


@pytest.mark.parametrize(
    ("name", "detector", "reason"),
    [
        ("levit_128s", "vim", "needs a linear head, and that of levit_128s is the average of 2"),
        ("levit_128s", "react", None),
        ("crossvit_tiny_240", "react", "needs a head that turns features into logits"),
        ("crossvit_tiny_240", "vim", "needs a head that turns features into logits"),
        ("crossvit_tiny_240", "mahalanobis-pp", None),
        ("crossvit_tiny_240", "energy", None),
        ("crossvit_tiny_240", "grad-uncertainty", None),
        ("crossvit_tiny_240", "odin", None),
    ],
)
def test_detectors_say_which_head_they_need(name: str, detector: str, reason: str | None) -> None:
    found = why_not_applicable(detector, create_backbone(name, 3, image_size=64).eval())
    assert (found is None) == (reason is None), found
    assert (reason or "") in (found or "")
    plain = timm.create_model(name, num_classes=3).eval()
    assert why_not_applicable(detector, plain) == found
