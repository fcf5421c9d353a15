"""A report on a stranger's folder: names are escaped, and files stay in the folder."""

import csv
import json
from html.parser import HTMLParser
from pathlib import Path
from unittest.mock import patch

import numpy as np
import pandas as pd
import pytest
import torch
from hostile import NAMES, dpn, files, outcome
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from dpn_plugin._records import FORMAT, json_hash
from dpn_plugin.metrics import RESULT_COLUMNS
from dpn_plugin.outputs import OutputKey, OutputStore
from dpn_plugin.report import write_report
from dpn_plugin.report.figures.classification import training_figure
from dpn_plugin.report.figures.maps import map_figure
from dpn_plugin.report.names import slug

FIELDS = ("suite", "backbone", "method", "detector", "dataset")
ANY_TEXT = st.text(st.characters(codec="utf-8"), max_size=20)
ONCE = settings(max_examples=30, suppress_health_check=[HealthCheck.function_scoped_fixture])


def write_hashed(path: Path, content: dict[str, object]) -> None:
    """Write a record with a correct hash, whatever it contains."""
    path.parent.mkdir(parents=True, exist_ok=True)
    content = {"format": FORMAT, **content}
    path.write_text(json.dumps({"sha256": json_hash(content), **content}), "utf-8")


def bench(folder: Path, **names: str) -> Path:
    """Write a benchmark of one method with the given names."""
    named = dict.fromkeys(FIELDS, "x") | names
    folder.mkdir(exist_ok=True)
    identity = {"seed": 0, "task": names.get("task", "ood"), "metric": "auroc", "value": 0.9}
    rows = [named | identity, named | identity | {"metric": names.get("metric", "aupr_in")}]
    pd.DataFrame(rows, columns=RESULT_COLUMNS).to_csv(folder / "results.csv", index=False)
    data = {"source": named["dataset"], "selection": named["method"], "samples": 60}
    record = {
        "suite": named["suite"],
        "title": names.get("title", "T"),
        "backbones": [named["backbone"]],
        "methods": [named["method"]],
        "detectors": [named["detector"]],
        "seeds": [0],
        "sets": {"near": {named["dataset"]: data}, "far": {}},
        "in_domain": data | {"classes": [named["method"]]},
        "in_domain_test": data,
        "outliers": {named["dataset"]: data},
        "fingerprints": {},
        "epochs": 1,
        "suite_epochs": 2,
        "limit": 60,
        "device": named["method"],
        "started": named["method"],
        "seconds": 1.0,
        "warnings": [named["method"]],
        "not_run": [{"reason": named["method"], "method": named["method"]}],
        "command": named["method"],
        "versions": {named["method"]: named["method"]},
        "code": {named["method"]: named["detector"]},
    }
    write_hashed(folder / "bench.json", record)
    return folder


def evaluation(**changes: object) -> dict[str, object]:
    """Return the content of an evaluation.json."""
    return {
        "identity": {"outputs": {}, "versions": {}},
        "data": {},
        "code": {},
        "backbone": "x",
        "method": "x",
        "seed": 0,
        "outputs": {},
        "general": [],
        "warnings": [],
        "training_seconds": 1.0,
        "seconds": 1.0,
    } | changes


def store_arrays(
    folder: Path, arrays: dict[str, torch.Tensor], weights: str = "w"
) -> dict[str, object]:
    """Store arrays as the outputs of all test sets, and return their keys."""
    key = OutputKey(weights, "d", None, "test")
    OutputStore(folder / "store").write(key, [arrays])
    return {"in_domain_test": key.hash, "near": {"x": key.hash}, "far": {}}


def with_run(folder: Path, **changes: object) -> Path:
    """Add an evaluated run to a benchmark."""
    random = np.random.default_rng(0)
    arrays = {
        "logits": torch.tensor(random.normal(0, 3, (60, 3))).float(),
        "labels": torch.tensor(random.integers(0, 3, 60)),
    }
    content = evaluation(**{"outputs": store_arrays(folder, arrays)} | changes)
    write_hashed(folder / "runs/a/b/evaluation.json", content)
    return folder


def samples(name: str = "x", **changes: object) -> dict[str, object]:
    """Return the content of a samples.json with a name in all its texts."""
    sample = {
        "index": 0,
        "predicted": name,
        "actual": name,
        "confidence": 0.5,
        "scores": {name: 0.5},
        "sources": {"correct": 0.5, "misclassified": 0.25, "ood": 0.25},
        "png": "iVBORw0KGgo=",
    } | changes
    group = {"kind": "accepted", "group": name, "dataset": name, "count": 1, "total": 2}
    return {
        "identity": {"outputs": {}, "versions": {}},
        "detector": name,
        "threshold": 0.5,
        "no_sources": name,
        "groups": [group | {"samples": [sample]}],
        "reason": None,
    }


class Tags(HTMLParser):
    """Collects the tags of a page with their attributes."""

    def __init__(self, page: str) -> None:
        super().__init__()
        self.found: list[tuple[str, dict[str, str | None]]] = []
        self.feed(page)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.found.append((tag, dict(attrs)))


def check_page(path: Path) -> None:
    page = path.read_text("utf-8")
    tags = Tags(page).found
    assert [tag for tag, _ in tags].count("script") == 1
    assert not any(name.startswith("on") for _, attributes in tags for name in attributes)
    assert not any("src" in attributes and tag != "img" for tag, attributes in tags)
    assert "49" not in page.split("<h1>")[1].split("</h1>")[0], "a template in a name was rendered"


@pytest.mark.parametrize("name", NAMES)
def test_names_are_neither_paths_nor_markup(name: str, tmp_path: Path) -> None:
    everywhere = dict.fromkeys((*FIELDS, "title", "metric"), name)
    folder = bench(tmp_path / "bench", **everywhere)
    before = files(tmp_path)
    check_page(write_report(folder, tmp_path / "out"))
    new = {path for path in files(tmp_path) - before if path != "out"}
    assert all(path.startswith("out/") for path in new), new
    tex = (tmp_path / "out" / "tables" / "tables.tex").read_text("utf-8")
    assert "\\input{" not in tex
    assert "<script" not in (tmp_path / "out" / "tables" / "tables.md").read_text("utf-8")
    for table in (tmp_path / "out" / "tables").glob("*.csv"):
        cells = [cell for row in csv.reader(table.open(encoding="utf-8")) for cell in row]
        assert not any(cell.startswith(("=", "+", "@")) for cell in cells)


@pytest.mark.parametrize("name", ["../$\\frac{$<script>", "x" * 300])
def test_names_in_figures(name: str, tmp_path: Path) -> None:
    everywhere = dict.fromkeys(FIELDS, name)
    folder = with_run(bench(tmp_path / "bench", **everywhere), backbone=name, method=name)
    before = files(tmp_path)
    check_page(write_report(folder, tmp_path / "out"))
    figures = {path for path in files(tmp_path) - before if path.endswith((".png", ".svg"))}
    assert figures
    assert all(path.startswith("out/figures/") for path in figures)
    assert not any("<script" in path.read_text() for path in tmp_path.rglob("*.svg"))


@ONCE
@given(names=st.fixed_dictionaries(dict.fromkeys((*FIELDS, "title", "metric"), ANY_TEXT)))
def test_any_names(names: dict[str, str], tmp_path: Path) -> None:
    out = tmp_path / "out"
    found = outcome(write_report, bench(tmp_path / "bench", **names), out)
    if not isinstance(found, str):
        check_page(found)
    assert {path.split("/")[0] for path in files(tmp_path)} <= {"bench", "out"}


@settings(max_examples=300)
@given(st.lists(st.text(max_size=200), max_size=3))
def test_a_slug_is_one_file_name(names: list[str]) -> None:
    made = slug(*[name.encode("utf-8", "replace").decode() for name in names])
    assert "/" not in made
    assert not made.startswith(".")
    assert len(made) < 200


CELLS = st.sampled_from(
    ["", "nan", "inf", "-inf", "1e400", "x", "0", "-1", "2", '"', "1,2", "\x00"]
)


@ONCE
@given(seed=CELLS, value=CELLS, task=st.sampled_from(["ood", "gap", "", "x", "classification"]))
def test_any_values(seed: str, value: str, task: str, tmp_path: Path) -> None:
    folder = bench(tmp_path / "bench", task=task)
    with (folder / "results.csv").open("a") as file:
        file.write(f"x,x,other,{seed},{task},x,x,auroc,{value}\n")
    outcome(write_report, folder, tmp_path / "out")


@ONCE
@given(content=st.binary(max_size=200))
def test_any_bytes_as_results(content: bytes, tmp_path: Path) -> None:
    folder = bench(tmp_path / "bench")
    head = (folder / "results.csv").read_bytes()
    (folder / "results.csv").write_bytes(head + content)
    outcome(write_report, folder, tmp_path / "out")


@pytest.mark.parametrize("name", NAMES)
def test_names_of_samples_are_not_markup(name: str, tmp_path: Path) -> None:
    folder = with_run(bench(tmp_path / "bench"))
    write_hashed(folder / "runs/a/b/samples.json", samples(name))
    with patch("dpn_plugin.report.figures._FIGURES", {}):
        page = write_report(folder, tmp_path / "out")
    check_page(page)
    assert 'id="samples"' in page.read_text("utf-8")


@pytest.mark.parametrize(
    "changes",
    [
        {"png": '"><script>alert(1)</script>'},
        {"png": ""},
        {"png": "data:text/html,x"},
        {"sources": {"correct": 1.0}},
        {"sources": {"correct": 7.0, "misclassified": 0.0, "ood": 0.0}},
        {"confidence": "x"},
        {"scores": {"x": float("nan")}},
        {"predicted": None},
    ],
)
def test_samples_that_no_evaluation_writes_are_not_shown(
    changes: dict[str, object], tmp_path: Path
) -> None:
    folder = with_run(bench(tmp_path / "bench"))
    write_hashed(folder / "runs/a/b/samples.json", samples(**changes))
    with patch("dpn_plugin.report.figures._FIGURES", {}):
        page = write_report(folder, tmp_path / "out")
    check_page(page)
    text = page.read_text("utf-8")
    assert "Not shown: " in text
    assert "data:image/png" not in text


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=5),
    lambda inner: (
        st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3)
    ),
    max_leaves=6,
)


@ONCE
@given(
    key=st.sampled_from(
        ["seed", "outputs", "method", "backbone", "in_domain_test", "near", "plane"]
    ),
    value=JSON,
)
def test_any_record_of_a_run(key: str, value: object, tmp_path: Path) -> None:
    folder = bench(tmp_path / "bench")
    if key in ("in_domain_test", "near", "plane"):
        content = evaluation(outputs={"in_domain_test": "x", key: value})
    else:
        content = evaluation(**{key: value})
    write_hashed(folder / "runs" / "evaluation.json", content)
    assert write_report(folder, tmp_path / "out").exists()


@pytest.mark.parametrize(
    "arrays",
    [
        {"labels": torch.zeros(5, dtype=torch.int64)},
        {"logits": torch.zeros(5, 3)},
        {"logits": torch.zeros(5), "labels": torch.zeros(5, dtype=torch.int64)},
        {"logits": torch.zeros(5, 3), "labels": torch.zeros(5, 3)},
        {
            "logits": torch.zeros(5, 3, dtype=torch.int8),
            "labels": torch.zeros(5, dtype=torch.int64),
        },
        {"logits": torch.zeros(5, 1), "labels": torch.zeros(5, dtype=torch.int64)},
        {"logits": torch.full((5, 3), torch.nan), "labels": torch.zeros(5, dtype=torch.int64)},
        {"logits": torch.full((5, 3), torch.inf), "labels": torch.full((5,), 99)},
        {
            "logits": torch.zeros(5, 3),
            "labels": torch.zeros(5, dtype=torch.int64),
            "mutual_information": torch.zeros(5, 3),
        },
        {
            "logits": torch.zeros(5, 3),
            "labels": torch.zeros(5, dtype=torch.int64),
            "inputs": torch.zeros(5, 3),
        },
    ],
)
def test_outputs_without_usable_logits_and_labels(
    arrays: dict[str, torch.Tensor], tmp_path: Path
) -> None:
    folder = bench(tmp_path / "bench")
    keys = store_arrays(folder, arrays, weights="other")
    plane = dict.fromkeys(("grid", "points"), keys["in_domain_test"])
    for outputs in (keys, keys | {"plane": plane}):
        assert dpn("report", with_run(folder, outputs=outputs)).exit_code == 0


@pytest.mark.parametrize(
    "name",
    [
        "bench.json",
        "runs/a/b/evaluation.json",
        "runs/a/b/run.json",
        "runs/a/b/samples.json",
    ],
)
def test_json_that_is_nested_too_deeply(name: str, tmp_path: Path) -> None:
    folder = with_run(bench(tmp_path / "bench"))
    (folder / name).write_text('{"a":' * 50_000)
    # the other figures take time and read no other records
    figures = {"maps": map_figure, "training": training_figure}
    with patch("dpn_plugin.report.figures._FIGURES", figures):
        assert dpn("report", folder).exit_code == (2 if name == "bench.json" else 0)
