"""Results that a plugin's code made are recomputed when the code changes."""

import json
from pathlib import Path

import pandas as pd
import pytest

from dpn_plugin.plugins import code_identity

PLUGIN = '''
    import torch
    import dpn_plugin
    from pytorch_ood.api import LogitsDetector

    class Largest(LogitsDetector):
        """Minus the largest logit."""
        requires_fit = False

        def __init__(self, model=None):
            super().__init__()
            self.model = model

        def predict_logits(self, logits):
            return SIGN * logits.amax(dim=1)

    def scaled_ce(num_classes, reduction="mean"):
        from pytorch_ood.loss import CrossEntropyLoss
        inner = CrossEntropyLoss(reduction=reduction)

        class Scaled(torch.nn.Module):
            def forward(self, logits, target):
                return SCALE * inner(logits, target)

        return Scaled()

    @dpn_plugin.hookimpl
    def dpn_detectors():
        yield dpn_plugin.Entry("largest", Largest, "Minus the largest logit")

    @dpn_plugin.hookimpl
    def dpn_losses():
        yield dpn_plugin.Entry("scaled-ce", scaled_ce, "Scaled cross-entropy")

    @dpn_plugin.hookimpl
    def dpn_methods():
        from dpn_plugin.runs import Method
        yield dpn_plugin.Entry("scaled", Method("scaled", "scaled-ce"), "Scaled cross-entropy")
'''

SUITE = """
title = "Points"
methods = ["scaled"]
detectors = ["largest", "dpn-mi"]
seeds = 1
[in_domain]
source = "synthetic:gaussians"
[far.around]
source = "synthetic:gaussians-ood"
[train]
backbone = "mlp_synthetic"
recipe = "synthetic"
epochs = 2
"""


@pytest.fixture
def bench(site):
    (site.folder / "points.toml").write_text(SUITE)
    source = PLUGIN.replace("SIGN", "1").replace("SCALE", "1.0")
    site.install("scaled-plugin", source)

    def run(*options: str):
        done = site.run("-m", "dpn_plugin", "bench", "points.toml", "--out", "out", *options)
        assert done.returncode == 0, done.stderr
        return done

    return run


def edit(site, old: str, new: str) -> None:
    path: Path = site.folder / "scaled_plugin.py"
    assert old in path.read_text()
    path.write_text(path.read_text().replace(old, new))


def auroc(site, detector: str) -> float:
    table = pd.read_csv(site.folder / "out" / "results.csv")
    chosen = table[table["detector"].eq(detector) & table["metric"].eq("auroc")]
    return float(chosen[chosen["dataset"].eq("around")]["value"].iloc[0])


def weights(site) -> str:
    path = site.folder / "out/runs/mlp_synthetic/scaled/seed-0/run.json"
    return json.loads(path.read_text())["networks"]["classifier"]["sha256"]


def test_a_changed_plugin_is_evaluated_and_trained_again(site, bench) -> None:
    bench()
    before, trained = auroc(site, "largest"), weights(site)
    record = json.loads((site.folder / "out" / "bench.json").read_text())
    assert record["code"]["detector largest"].startswith("scaled-plugin 1.2 ")
    assert {"loss scaled-ce", "method scaled"} <= record["code"].keys()
    assert "reuse" in bench("--dry-run").stdout

    edit(site, "return 1 *", "return -1 *")
    assert "train" in bench("--dry-run").stdout  # the plugin offers the method, too
    bench()
    assert auroc(site, "largest") == pytest.approx(1 - before)
    assert weights(site) == trained

    edit(site, "return 1.0 *", "return 3.0 *")
    bench()
    assert weights(site) != trained


def test_a_new_version_of_a_plugin_counts_as_changed(site, bench) -> None:
    bench()
    metadata = site.folder / "scaled_plugin-1.2.dist-info" / "METADATA"
    metadata.write_text(metadata.read_text().replace("Version: 1.2", "Version: 1.3"))
    assert "1 of 2 detectors" not in bench("--dry-run").stdout
    assert "train" in bench("--dry-run").stdout


def test_names_that_no_plugin_offers_have_no_identity() -> None:
    assert code_identity("backbones", "resnet18") == ""
    assert code_identity("detectors", "knn") == ""
