"""Every detector on small trained backbones has finite scores that do not depend on the batch."""

import pytest
from pytorch_ood.detector import __all__ as HOST

import dpn_plugin
from benchmark_suites.matrix.cells import Cell, cell, reason_for_unsteadiness
from benchmark_suites.matrix.subjects import Subject, subject
from benchmark_suites.matrix.table import page
from dpn_plugin.plugins import registry

BACKBONES = ("test_resnet", "test_vit")
DETECTORS = dpn_plugin.list_detectors()

#: the combinations that are not applicable, and the reason
IMPOSSIBLE = {
    "mcm": "MCM needs text_embeddings of the classes from a vision-language model, and {} has no"
    " text encoder.",
    "gram on test_vit": "Gram needs feature maps, and {} has none.",
    "multi-mahalanobis on test_vit": "MultiMahalanobis needs feature maps, and {} has none.",
    "rank-feat on test_vit": "RankFeat needs feature maps, and {} has none.",
}


@pytest.fixture(scope="module", params=BACKBONES)
def trained(request: pytest.FixtureRequest) -> Subject:
    return subject(request.param, pixels=16, train=300, test=40)


@pytest.mark.parametrize("name", DETECTORS)
def test_scores_do_not_depend_on_the_batch_or_have_a_reason(name: str, trained: Subject) -> None:
    found = cell(name, trained)
    backbone = trained.backbone.name
    expected = IMPOSSIBLE.get(name) or IMPOSSIBLE.get(f"{name} on {backbone}", "")
    assert found.reason == expected.format(backbone)
    if not expected:
        assert 0 <= found.auroc <= 1
        assert found.steady or reason_for_unsteadiness(found)


# what a transformer learns from a few hundred digits depends on the random seed; a convolutional
# network detects noise reliably
@pytest.mark.parametrize("trained", ["test_resnet"], indirect=True)
@pytest.mark.parametrize("name", ["mahalanobis", "rmd", "vim", "gmm"])
def test_detectors_fitted_to_training_data_detect_noise(name: str, trained: Subject) -> None:
    assert cell(name, trained).auroc > 0.8


def test_every_detector_of_the_host_has_a_row() -> None:
    host_names = [name for name in HOST if name[0].isupper() or name == "fDBD"]
    rows = {type_name(name) for name in DETECTORS}
    assert len(host_names) >= 35
    assert set(host_names) <= rows


def type_name(name: str) -> str:
    return registry.load("detectors", name).__name__


def test_the_page_shows_figures_marks_and_one_letter_per_reason() -> None:
    cells = [
        Cell("a", "net_a", auroc=0.5, reads="logits"),
        Cell("a", "net_b", auroc=1.0, reads="logits", steady=False),
        Cell("b", "net_a", reason="B needs maps, and net_a has none."),
        Cell("b", "net_b", reason="B needs maps, and net_b has none."),
    ]
    text = page(cells, {"net_a": 0.9, "net_b": 0.8})
    assert "| `a` | logits | 50.0 | 100.0* |" in text
    assert "| `b` |  | a | a |" in text
    assert text.count("B needs maps, and the backbone has none.") == 1
    assert "`a` on net_b: unexplained" in text
    assert "| *accuracy* |  | 90.0 | 80.0 |" in text
