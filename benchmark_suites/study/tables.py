"""The tables of the study, as Markdown."""

import math
from collections.abc import Iterator, Sequence
from pathlib import Path

import pandas as pd

from dpn_plugin.bench import BenchRecord, DataRecord
from dpn_plugin.evaluation import EVALUATION_FILE, read_evaluation
from dpn_plugin.report import DASH, PairedRow, Results, Scope, find_searches, points


def results_tables(results: Results, scope: Scope) -> Iterator[str]:
    """Return a table of AUROC for every group of OOD sets, or for every set of a single group."""
    groups = {group: names for group, names in results.sets(scope.suite).items() if names}
    shown = {name: name for names in groups.values() for name in names}
    if len(groups) > 1:
        shown = {group: f"{group} (mean of {', '.join(names)})" for group, names in groups.items()}
    rows = results.rows(scope)
    rows = rows[rows["task"].eq("ood") & rows["metric"].eq("auroc")]
    for dataset, title in shown.items():
        yield f"**{title}**: AUROC in per cent, mean ± standard deviation over seeds."
        yield _by_detector(rows[rows["dataset"].eq(dataset)])


def _by_detector(rows: pd.DataFrame) -> str:
    """Return a table with a row for every method and a column for every detector."""
    detectors = list(dict.fromkeys(rows["detector"]))
    keys = list(zip(rows["method"], rows["detector"], strict=True))
    cells = dict(zip(keys, zip(rows["mean"], rows["std"], strict=True), strict=True))
    best = f"{100 * rows['mean'].max():.1f}"
    body = []
    for method in dict.fromkeys(rows["method"]):
        found = [_cell(cells.get((method, detector)), best) for detector in detectors]
        body.append([f"`{method}`", *found])
    return table(["method", *(f"`{name}`" for name in detectors)], body)


def _cell(found: tuple[float, float] | None, best: str = "") -> str:
    """Return mean and standard deviation in per cent, in bold if the mean is the best one."""
    if found is None or math.isnan(found[0]):
        return DASH
    mean, spread = (f"{100 * value:.1f}" for value in found)
    shown = f"**{mean}**" if mean == best else mean
    return shown if math.isnan(found[1]) else f"{shown} ± {spread}"


def classification_table(results: Results, scope: Scope) -> str:
    """Return accuracy, detection of misclassified samples, and seconds of every method."""
    rows = results.rows(scope)
    seconds = _seconds(results, scope)
    body = []
    for method in dict.fromkeys(rows["method"]):
        own = rows[rows["method"].eq(method)]
        wrong = own[own["task"].eq("misclassification") & own["metric"].eq("auroc")]
        wrong = wrong.sort_values("mean", ascending=False).head(1)
        name = f" (`{wrong['detector'].iloc[0]}`)" if len(wrong) else ""
        accuracy = _cell(_first(own[own["metric"].eq("accuracy")]))
        trained, scored = seconds.get(method, (0.0, 0.0))
        wrong_cell = _cell(_first(wrong)) + name
        body.append([f"`{method}`", accuracy, wrong_cell, f"{trained:.1f}", f"{scored:.1f}"])
    heads = ["method", "accuracy", "misclassified: best AUROC", "s training", "s all detectors"]
    return table(heads, body)


def _first(rows: pd.DataFrame) -> tuple[float, float] | None:
    return (rows["mean"].iloc[0], rows["std"].iloc[0]) if len(rows) else None


def _seconds(results: Results, scope: Scope) -> dict[str, tuple[float, float]]:
    """Return the mean seconds of training and of scoring of a run, by method."""
    found: dict[str, list[tuple[float, float]]] = {}
    for folder in results.suite_folders(scope.suite):
        for path in Path(folder).glob(f"runs/{scope.backbone}/*/*/{EVALUATION_FILE}"):
            record = read_evaluation(path.parent)
            if record is not None:
                scored = sum(each.seconds for each in record.detectors.values())
                found.setdefault(record.method, []).append((record.training_seconds, scored))
    return {
        method: (sum(a for a, _ in each) / len(each), sum(b for _, b in each) / len(each))
        for method, each in found.items()
    }


def search_table(results: Results, suite: str) -> str:
    """Return budget, ranges and choice of every method; empty without a search."""
    rows = [row.cells[2:] for row in find_searches(results) if row.suite == suite]
    heads = ["method", "trials", "ranges", "chosen", "held-out accuracy", "held-out AUROC", "s"]
    return table(heads, [list(row) for row in rows]) if rows else ""


def paired_table(rows: Sequence[PairedRow]) -> str:
    """Return the differences of one question, a row for every set."""
    body = [
        [
            f"{row.scope.suite}: {row.dataset}",
            f"{100 * row.reference_auroc:.1f}",
            f"{100 * row.auroc:.1f}",
            points(row.paired.difference),
            f"{points(row.paired.low)} to {points(row.paired.high)}",
            row.paired.verdict,
        ]
        for row in rows
    ]
    return table(["set", "first", "second", "difference", "95 % interval", "the first is"], body)


def data_text(record: BenchRecord, backbone: str) -> str:
    """Return what was trained and tested on, and for how long."""
    outliers = ", ".join(_data(each) for each in record.outliers.values())
    tests = [
        f"{name} ({group}): {_data(each)}"
        for group, sets in record.sets.items()
        for name, each in sets.items()
    ]
    return (
        f"`{backbone}`, {len(record.seeds)} seeds, {record.epochs} epochs. In-domain: "
        f"{_data(record.in_domain)}; tested on {record.in_domain_test.samples:,}. Outliers to "
        f"train with: {outliers}. OOD tests: {'; '.join(tests)}. Training and scoring took "
        f"{record.seconds / 60:.0f} minutes in all, the search aside, on {record.device}."
    )


def _data(data: DataRecord) -> str:
    selection = f" [{data.selection}]" if data.selection else ""
    return f"`{data.source}{selection}`, {data.samples:,} samples"


def table(heads: Sequence[str], body: Sequence[Sequence[str]]) -> str:
    """Return a Markdown table."""
    lines = [heads, ["---"] * len(heads), *body]
    return "\n".join(f"| {' | '.join(line)} |" for line in lines)
