"""Bundles of evidential networks: their own scores are kept, loaded and exported."""

from pathlib import Path

import pytest
import torch
from bundles import bundle_folder, tensors, trained_run

from dpn_plugin.deploy import export_bundle, load_bundle
from dpn_plugin.detectors import create_detector
from dpn_plugin.runs import Predictor

DETECTORS = ("total-variance", "daedl")


@pytest.mark.parametrize("method", ["f-edl", "daedl"])
def test_a_bundle_gives_the_scores_of_the_run(method: str) -> None:
    bundle = load_bundle(bundle_folder(method, DETECTORS))
    images = tensors(*range(12))
    run = trained_run(method)
    with torch.inference_mode():
        logits = Predictor(run)(run.transform(images))
    expected = create_detector("total-variance").predict_logits(logits).double()
    scores = bundle(images).detectors["total-variance"].score
    torch.testing.assert_close(scores, expected, rtol=1e-4, atol=1e-4)


def test_a_torch_program_computes_both_scores(tmp_path: Path) -> None:
    bundle = load_bundle(bundle_folder("f-edl", DETECTORS))
    exported = export_bundle(bundle, tmp_path / "f-edl.pt2", "pt2")
    assert not exported.left_out
    images = tensors(*range(5))
    with torch.no_grad():
        found = torch.export.load(exported.path).module()(images)
    for name in DETECTORS:
        scores = bundle(images).detectors[name].score.float()
        torch.testing.assert_close(found[f"{name}.score"], scores, rtol=1e-3, atol=1e-3)
