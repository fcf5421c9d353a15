"""
Time ``dpn_plugin.evaluate`` beside pytorch-ood's own ``Benchmark.evaluate``.

    python -m benchmark_suites.speed.evaluate

runs one network over an in-domain set and five OOD sets of the same size and scores them with five
detectors of logits. Both get the same model, samples and detectors and are timed alternately on one
thread; the ratio is printed. It exits with 1 if a metric that both compute differs or the ratio is
below the limit.
"""

import argparse
import sys

import torch
from torch import nn
from torch.utils.data import DataLoader

import dpn_plugin
from benchmark_suites.speed.benchmark import (
    BATCH,
    CLASSES,
    HOST_NAMES,
    ROUNDS,
    Figures,
    Noise,
    largest_difference,
    timed,
    with_host,
)
from dpn_plugin.backbones import create_backbone

OOD_SETS = 5
#: the host's names of the same detectors
DETECTORS = {
    "max-softmax": "MaxSoftmax",
    "entropy": "Entropy",
    "energy-based": "EnergyBased",
    "max-logit": "MaxLogit",
    "dpn-mi": "MutualInformation",
}


def with_evaluate(model: nn.Module, noise: Noise) -> Figures:
    """Return the metrics that ``dpn_plugin.evaluate`` computes and pytorch-ood does, too."""
    loaders = {name: DataLoader(each, batch_size=BATCH) for name, each in noise.sets.items()}
    inside = loaders.pop("in-domain")
    table = dpn_plugin.evaluate(model, inside, loaders, detectors=list(DETECTORS))
    rows = table[(table.task == "ood") & table.metric.isin(list(HOST_NAMES))]
    columns = zip(rows.detector, rows.dataset, rows.metric, rows.value, strict=True)
    return {(DETECTORS[det], str(name), str(metric)): float(v) for det, name, metric, v in columns}


def main() -> int:
    """Return the exit code: 1 if metrics differ or the ratio is below the limit."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--samples", type=int, default=640, help="of every set")
    parser.add_argument("--size", type=int, default=96, help="pixels along a side")
    parser.add_argument("--backbone", default="resnet18")
    parser.add_argument("--least-ratio", type=float, default=1.6)
    options = parser.parse_args()
    torch.set_num_threads(1)
    torch.manual_seed(0)
    noise = Noise(options.samples, options.size, OOD_SETS)
    model = create_backbone(
        options.backbone, CLASSES, image_size=options.size, stem="default"
    ).eval()
    host, ours, difference = [], [], 0.0
    for _ in range(ROUNDS):
        seconds, theirs = timed(lambda: with_host(model, noise))
        host.append(seconds)
        seconds, found = timed(lambda: with_evaluate(model.model, noise))
        ours.append(seconds)
        difference = max(difference, largest_difference(found, theirs))
    ratio = min(host) / min(ours)
    print(f"pytorch-ood {min(host):.1f} s, evaluate {min(ours):.1f} s: {ratio:.2f}x")
    print(f"{len(theirs)} metrics, largest difference {difference:.1e}")
    return int(ratio < options.least_ratio or difference > 1e-6)


if __name__ == "__main__":
    sys.exit(main())
