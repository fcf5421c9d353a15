"""
Time several detectors on several OOD sets.

    python -m benchmark_suites.speed.benchmark

runs one network over an in-domain set and six OOD sets of the same size and scores them with five
detectors of logits: with ``pytorch_ood.benchmark.Benchmark.evaluate``, which gets all detectors at
once and so runs the network once per OOD set, and through the store of outputs, as ``dpn bench``
does. Both are timed alternately on one thread; the ratio is printed. It exits with 1 if a metric
differs or the ratio is below the limit.
"""

import argparse
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import torch
from pytorch_ood.api import Detector
from pytorch_ood.benchmark import Benchmark
from pytorch_ood.detector import EnergyBased, Entropy, MaxLogit, MaxSoftmax
from torch import Tensor, nn
from torch.utils.data import DataLoader, Dataset, TensorDataset

from dpn_plugin.backbones import create_backbone
from dpn_plugin.detectors import MutualInformation
from dpn_plugin.metrics import ood_metrics
from dpn_plugin.outputs import OutputKey, OutputStore, score_chunks

OOD_SETS, CLASSES, BATCH, ROUNDS = 6, 10, 64, 2
#: the host's names of the same metrics
HOST_NAMES = {"auroc": "AUROC", "aupr_in": "AUPR-IN", "aupr_out": "AUPR-OUT", "fpr95": "FPR95TPR"}
Figures = dict[tuple[str, str, str], float]


class Noise(Benchmark):
    """
    In-domain images of noise, and OOD sets of other noise.

    :param samples: the number of samples of every set
    :param size: the number of pixels along a side
    :param ood_sets: the number of OOD sets
    """

    def __init__(self, samples: int, size: int, ood_sets: int = OOD_SETS) -> None:
        generator = torch.Generator().manual_seed(0)
        labels = torch.arange(samples) % CLASSES
        self.sets = {}
        for index in range(ood_sets + 1):
            images = torch.randn(samples, 3, size, size, generator=generator) * (1 + 0.3 * index)
            name = f"noise-{index}" if index else "in-domain"
            self.sets[name] = TensorDataset(
                images, torch.full_like(labels, -1) if index else labels
            )

    def train_set(self) -> Dataset:
        """Raise: no detector here requires fitting."""
        raise NotImplementedError

    def test_sets(self, known: bool = True, unknown: bool = True) -> list[Dataset]:
        """Return every OOD set joined with the in-domain set, as pytorch-ood's benchmarks do."""
        inside = self.sets["in-domain"]
        return [inside + each for name, each in self.sets.items() if name != "in-domain"]

    @property
    def ood_names(self) -> list[str]:
        """The names of the sets, in the order of :meth:`test_sets`."""
        return [name for name in self.sets if name != "in-domain"]


def detectors(model: nn.Module) -> dict[str, Detector]:
    """Return five detectors that read logits."""
    kinds = (MaxSoftmax, Entropy, EnergyBased, MaxLogit, MutualInformation)
    return {kind.__name__: kind(model) for kind in kinds}


def with_host(model: nn.Module, noise: Noise) -> Figures:
    """Return the metrics that the benchmark of pytorch-ood computes."""
    scorers = list(detectors(model).values())
    rows = noise.evaluate(scorers, loader_kwargs={"batch_size": BATCH})
    return {
        (row["Detector"], row["Dataset"], metric): row[name]
        for row in rows
        for metric, name in HOST_NAMES.items()
    }


def with_store(model: nn.Module, noise: Noise, folder: Path) -> Figures:
    """Return the metrics that are computed from stored outputs."""
    store = OutputStore(folder)
    logits = {
        name: store.write(OutputKey("weights", name, None, "test"), outputs(model, samples)).arrays[
            "logits"
        ]
        for name, samples in noise.sets.items()
    }
    figures = {}
    for kind, detector in detectors(model).items():
        scores = {
            name: score_chunks(detector.predict_logits, each) for name, each in logits.items()
        }
        for name in noise.ood_names:
            for metric, value in ood_metrics(scores["in-domain"], scores[name]).items():
                figures[kind, name, metric] = value
    return figures


def outputs(model: nn.Module, samples: Dataset) -> Iterator[dict[str, Tensor]]:
    """Return the logits and labels of one batch after the other."""
    for x, labels in DataLoader(samples, batch_size=BATCH):
        with torch.inference_mode():
            yield {"logits": model(x), "labels": labels}


def timed(work: Callable[[], Figures]) -> tuple[float, Figures]:
    """Return the seconds of processor time, and the result."""
    start = time.process_time()
    figures = work()
    return time.process_time() - start, figures


def largest_difference(ours: Figures, theirs: Figures) -> float:
    """Return the largest difference of two metrics of the same name."""
    if ours.keys() != theirs.keys():
        raise ValueError(f"the names of the metrics differ: {ours.keys() ^ theirs.keys()}")
    return max(abs(ours[key] - theirs[key]) for key in ours)


def main() -> int:
    """Return the exit code: 1 if metrics differ or the ratio is below the limit."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--samples", type=int, default=640, help="of every set")
    parser.add_argument("--size", type=int, default=32, help="pixels along a side")
    parser.add_argument("--backbone", default="resnet18")
    parser.add_argument("--least-ratio", type=float, default=1.6)
    options = parser.parse_args()
    torch.set_num_threads(1)
    torch.manual_seed(0)
    noise = Noise(options.samples, options.size)
    model = create_backbone(
        options.backbone, CLASSES, image_size=options.size, stem="default"
    ).eval()
    host, ours, difference = [], [], 0.0
    for _ in range(ROUNDS):
        with tempfile.TemporaryDirectory() as folder:
            seconds, theirs = timed(lambda: with_host(model, noise))
            host.append(seconds)
            seconds, found = timed(lambda: with_store(model, noise, Path(folder)))
            ours.append(seconds)
        difference = max(difference, largest_difference(found, theirs))
    ratio = min(host) / min(ours)
    print(f"pytorch-ood {min(host):.1f} s, stored once {min(ours):.1f} s: {ratio:.2f}x")
    print(f"{len(theirs)} metrics, largest difference {difference:.1e}")
    return int(ratio < options.least_ratio or difference > 1e-6)


if __name__ == "__main__":
    sys.exit(main())
