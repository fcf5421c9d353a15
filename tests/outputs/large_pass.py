"""Print the peak of private memory of a pass over so many features, and of their use, in MiB."""

import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

import torch
from private_memory import PeakPrivate, private_bytes
from torch import Tensor

from dpn_plugin._distributed import Processes
from dpn_plugin.data import Batches, Samples
from dpn_plugin.detectors import create_detector, fit, scores
from dpn_plugin.outputs import FitSets, OutputKey, OutputStore
from dpn_plugin.outputs.forward_pass import BATCH, ForwardPass
from dpn_plugin.outputs.mapped import MappedPoints

WIDTH, CLASSES, FITTED = 1024, 10, 200


def use(rows: int, store: OutputStore) -> None:
    def outputs(start: int, step: int) -> Iterator[dict[str, Tensor]]:
        for first in range(start * BATCH, rows, step * BATCH):
            generator = torch.Generator().manual_seed(first)
            yield {"features": torch.randn(min(BATCH, rows - first), WIDTH, generator=generator)}

    key = OutputKey("w", str(rows), None, "features")
    entry = ForwardPass(store, key, rows, outputs, Processes(torch.device("cpu"))).run()
    assert entry is not None
    labels = torch.arange(rows) % CLASSES
    points = MappedPoints.of(entry.arrays["features"])
    samples = Samples(points, labels, "features", tuple(map(str, range(CLASSES))))
    for z, _ in Batches(samples.subset(torch.arange(rows)), BATCH, shuffle=True).epoch(0):
        assert z.shape[1] == WIDTH  # the rows that training reads
    part = FitSets.of({"train": samples}, {"train": ""}, FITTED).samples["train"]
    train = {"features": part.all_rows().numpy(), "labels": part.labels.numpy()}
    detector = create_detector("knn")
    fit(detector, train, list)
    assert len(scores(detector, entry.arrays, list)) == rows


if __name__ == "__main__":
    torch.set_num_threads(1)
    before, memory = private_bytes(), PeakPrivate()
    with tempfile.TemporaryDirectory() as folder:
        use(int(sys.argv[1]), OutputStore(Path(folder)))
    print((memory.stop() - before) / 2**20)
