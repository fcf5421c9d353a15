"""
Measure the memory that scoring a million outputs of a thousand classes takes.

``python -m benchmark_suites.speed.memory`` writes 4 GB into a temporary folder (``TMPDIR``), scores
them with the Dirichlet measures, prints the OOD metrics and the peak of resident memory (Linux),
and exits with 1 if the peak is above the limit.
"""

import argparse
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

import torch
from torch import Tensor

from dpn_plugin.functional import dirichlet_measures
from dpn_plugin.metrics import ood_metrics
from dpn_plugin.outputs import OutputKey, OutputStore, score_chunks

BATCH = 4096
#: measures that decrease with uncertainty are negated
SIGNS = {"max_p": -1, "entropy": 1, "mutual_information": 1, "log_precision": -1}


def synthetic_batches(rows: int, classes: int) -> Iterator[dict[str, Tensor]]:
    """Yield logits and labels; only the first half has one large logit and a label."""
    generator = torch.Generator().manual_seed(0)
    for first in range(0, rows, BATCH):
        index = torch.arange(first, min(first + BATCH, rows))
        logits = torch.randn(len(index), classes, generator=generator)
        labels = torch.where(index < rows // 2, index % classes, -1)
        logits[labels >= 0, labels[labels >= 0]] += 4
        yield {"logits": logits, "labels": labels}


def uncertainties(logits: Tensor) -> Tensor:
    """Return one column per measure; larger is more uncertain."""
    measures = dirichlet_measures(logits)
    return torch.stack([sign * getattr(measures, name) for name, sign in SIGNS.items()], dim=1)


def peak_mib() -> float:
    """Return the peak of the resident memory of this process."""
    # not getrusage, whose peak includes that of the parent process
    status = Path("/proc/self/status").read_text(encoding="ascii")
    line = next(line for line in status.splitlines() if line.startswith("VmHWM"))
    return int(line.split()[1]) / 1024


def run(rows: int, classes: int, folder: Path) -> None:
    """Write, read back and score logits, and print the time of each step."""
    start = time.perf_counter()
    key = OutputKey("synthetic", f"{rows}x{classes}", None, "test")
    logits = OutputStore(folder).write(key, synthetic_batches(rows, classes)).arrays["logits"]
    print(f"written {logits.nbytes / 1e9:.2f} GB in {time.perf_counter() - start:.1f} s")
    start = time.perf_counter()
    scores = score_chunks(uncertainties, logits)
    for name, column in zip(SIGNS, scores.unbind(dim=1), strict=True):
        found = ood_metrics(column[: rows // 2], column[rows // 2 :])
        print(name, " ".join(f"{metric}={value:.4f}" for metric, value in found.items()))
    print(f"scored and measured in {time.perf_counter() - start:.1f} s")


def main() -> int:
    """Return the exit code: 1 if the limit is exceeded."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rows", type=int, default=1_000_000)
    parser.add_argument("--classes", type=int, default=1_000)
    parser.add_argument("--limit-mib", type=float, default=2048)
    options = parser.parse_args()
    before = peak_mib()
    with tempfile.TemporaryDirectory() as folder:
        run(options.rows, options.classes, Path(folder))
    peak = peak_mib()
    print(f"peak memory {peak:.0f} MiB, of which {before:.0f} MiB after the imports")
    return int(peak > options.limit_mib)


if __name__ == "__main__":
    sys.exit(main())
