"""The examples of the documentation run, and their results support the claims made there."""

import doctest
import os
import re
import subprocess
import sys
from pathlib import Path

import pandas as pd
import pytest

ROOT = Path(__file__).parents[1]


def printed(example: str, folder: Path, *arguments: str) -> dict[str, float]:
    """Run an example and return the numbers that it prints, by name."""
    done = subprocess.run(
        [sys.executable, str(ROOT / "docs" / "examples" / example), *arguments],
        cwd=folder,
        env={**os.environ, "PYTHONPATH": str(ROOT)},
        capture_output=True,
        text=True,
        timeout=300,
    )
    assert done.returncode == 0, done.stderr
    return {name: float(value) for name, value in map(str.split, done.stdout.splitlines())}


def test_dpn_minus_separates_the_plane_and_inverts_differential_entropy(tmp_path: Path) -> None:
    roc = printed("synthetic.py", tmp_path)
    assert set(roc) == {"dpn-maxp", "dpn-entropy", "dpn-mi", "dpn-precision", "dpn-dent"}
    assert roc["dpn-mi"] > 0.99
    assert roc["dpn-dent"] < 0.2
    assert min(value for name, value in roc.items() if name != "dpn-dent") > 0.98
    assert list(tmp_path.iterdir()) == []


def test_the_table_of_a_benchmark_has_mean_and_deviation_of_the_seeds(tmp_path: Path) -> None:
    rows = [
        ("baseline", seed, *row)
        for seed, values in enumerate([(0.9, 0.8, 0.7, 0.6), (0.92, 0.8, 0.72, 0.6)])
        for row in [
            ("classification", "", "", "accuracy", values[0]),
            ("misclassification", "dpn-maxp", "", "auroc", values[1]),
            ("ood", "dpn-maxp", "near", "auroc", values[2]),
            ("ood", "dpn-maxp", "far", "auroc", values[3]),
            ("ood", "dpn-mi", "near", "auroc", 0.1),
        ]
    ]
    columns = ["method", "seed", "task", "detector", "dataset", "metric", "value"]
    pd.DataFrame(rows, columns=columns).to_csv(tmp_path / "results.csv", index=False)
    script = ROOT / "docs" / "examples" / "table.py"
    table = subprocess.check_output([sys.executable, script, tmp_path], text=True).splitlines()
    assert table[0] == "| method | score | accuracy | misclassified | near | far |"
    assert table[2:] == ["| baseline | Max.P | 91.0 ± 1.4 | 80.0 ± 0.0 | 71.0 ± 1.4 | 60.0 ± 0.0 |"]


def test_the_anchor_stops_the_drift_of_the_precision(tmp_path: Path) -> None:
    last = printed("anchor.py", tmp_path, "anchor.png")
    assert (tmp_path / "anchor.png").read_bytes().startswith(b"\x89PNG")
    assert last["dpn-minus-in"] > 20 > 8 > last["dpn-minus-anchored-in"] > 4
    assert last["dpn-plus-ood"] > 10 > 4 > last["dpn-plus-anchored-ood"] > 0
    assert last["dpn-minus-anchored-ood"] < 0


PAGES = [
    page for page in sorted((ROOT / "docs").glob("*.md")) if "```{doctest}" in page.read_text()
]


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.stem)
def test_examples_of_a_page_print_what_they_show(page: Path, monkeypatch) -> None:
    monkeypatch.syspath_prepend(ROOT / "docs" / "examples" / "plugin")
    blocks = re.findall(r"^```{doctest}\n(.*?)^```$", page.read_text("utf-8"), re.M | re.S)
    examples = doctest.DocTestParser().get_doctest("".join(blocks), {}, page.stem, str(page), 0)
    assert doctest.DocTestRunner().run(examples).failed == 0


def test_figures_of_the_paper_are_quoted_correctly() -> None:
    table = pd.read_csv(ROOT / "dpn_plugin" / "bench" / "paper_results.csv")
    found = table[(table["table"] == "ood_detection") & (table["metric"] == "auroc")]
    found = found.assign(method=found["method"].replace("de", "deep-ensemble"))
    means = found.groupby(["task", "method", "measure"])["mean"].mean()
    page = (ROOT / "docs" / "choosing.md").read_text("utf-8")
    measures = {"Max.P": "max_p", "mutual information": "mi"}
    rows = re.findall(r"^\| `(\S+)` \| (?:yes|no) \| (.*?) \| (.*?) \|$", page, re.M)
    assert len(rows) == 7
    for method, score, values in rows:
        for task, value in zip(("C10", "C100", "TIM"), values.split(" | "), strict=True):
            assert abs(means[task, method, measures[score]] - float(value)) <= 0.0501
