"""Print the main figures of a benchmark as the table of the README: table.py FOLDER."""

import sys
from pathlib import Path

import pandas as pd

ROWS = [  # method, the score for OOD, and its name in the table
    ("baseline", "dpn-maxp", "Max.P"),
    ("deep-ensemble", "dpn-maxp", "Max.P"),
    ("oe", "dpn-maxp", "Max.P"),
    ("dpn-rev", "dpn-mi", "mutual information"),
    ("dpn-plus", "dpn-mi", "mutual information"),
    ("dpn-minus", "dpn-mi", "mutual information"),
    ("dpn-minus", "dpn-gaussian-kl", "Gaussian-KL"),
    ("dpn-minus-anchored", "dpn-mi", "mutual information"),
]
COLUMNS = {  # the name in the table: task, data set, metric; a detector that replaces the row's
    "accuracy": ("classification", "", "accuracy", ""),
    "misclassified": ("misclassification", "", "auroc", "dpn-maxp"),
    "near": ("ood", "near", "auroc", None),
    "far": ("ood", "far", "auroc", None),
}


def cell(results: pd.DataFrame, method: str, detector: str, column: str) -> str:
    """Return mean and standard deviation over the seeds, in percent."""
    task, dataset, metric, fixed = COLUMNS[column]
    wanted = {
        "method": method,
        "task": task,
        "dataset": dataset,
        "metric": metric,
        "detector": detector if fixed is None else fixed,
    }
    values = 100 * results[(results[list(wanted)] == pd.Series(wanted)).all(axis=1)]["value"]
    spread = f" ± {values.std():.1f}" if len(values) > 1 else ""
    return f"{values.mean():.1f}{spread}" if len(values) else "-"


results = pd.read_csv(Path(sys.argv[1]) / "results.csv", keep_default_na=False)
results["value"] = pd.to_numeric(results["value"])
print("| method | score |", " | ".join(COLUMNS), "|\n|---|---|" + "---|" * len(COLUMNS))
for method, detector, label in ROWS:
    if method in set(results["method"]):
        cells = [cell(results, method, detector, column) for column in COLUMNS]
        print(f"| {method} | {label} |", " | ".join(cells), "|")
