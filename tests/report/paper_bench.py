"""Folders of the paper's suites with made-up figures: results without runs."""

from pathlib import Path

import pandas as pd
from sample_bench import SampleBench

from dpn_plugin._records import write_record
from dpn_plugin.bench import paper_figures
from dpn_plugin.metrics import RESULT_COLUMNS

TASKS = {"c10": "C10", "c100": "C100", "tim": "TIM"}
BACKBONE = "vgg16_cifar"


def paper_bench(
    folder: Path, suite: str, values: dict[tuple[str, str, str], list[float]], metric: str = "auroc"
) -> Path:
    """
    Write a benchmark with figures of OOD detection only.

    :param values: one per seed, by method, detector and set
    """
    rows = [
        (suite, BACKBONE, method, seed, "ood", detector, dataset, metric, value)
        for (method, detector, dataset), own in values.items()
        for seed, value in enumerate(own)
    ]
    return write_bench(folder, suite, rows)


def complete_bench(folder: Path, suite: str) -> Path:
    """Write a benchmark that has a figure for each of the paper's: 90, 100 and 110 % of it."""
    table = paper_figures(TASKS[suite])
    table = table[table["detector"] != "best"].drop_duplicates(
        ["task", "dataset", "method", "detector", "metric"]
    )
    rows = [
        (suite, BACKBONE, r.method, seed, r.task, r.detector, r.dataset, r.metric, r.paper_mean * f)
        for r in table.itertuples()
        for seed, f in enumerate((0.9, 1.0, 1.1))
    ]
    return write_bench(folder, suite, rows)


def write_bench(folder: Path, suite: str, rows: list[tuple]) -> Path:
    """Write ``results.csv`` and ``bench.json``."""
    folder.mkdir(parents=True, exist_ok=True)
    pd.DataFrame(rows, columns=RESULT_COLUMNS).to_csv(folder / "results.csv", index=False)
    sample = SampleBench(suite=suite, backbone=BACKBONE, near=(), far=("textures",)).record()
    write_record(folder / "bench.json", sample.model_copy(update={"paper_task": TASKS[suite]}))
    return folder
