"""Reading the folders of a report: what is refused, and how several are joined."""

import json
import shutil
from collections.abc import Callable
from pathlib import Path

import pandas as pd
import pytest
from sample_bench import SampleBench

from dpn_plugin._records import json_hash
from dpn_plugin.errors import UserError
from dpn_plugin.report import write_report
from dpn_plugin.report.results import load_results


def change_record(folder: Path, **changes: object) -> None:
    path = folder / "bench.json"
    path.write_text(json.dumps(json.loads(path.read_text()) | changes))


def change_record_and_hash(folder: Path, **changes: object) -> None:
    content = json.loads((folder / "bench.json").read_text()) | changes
    content.pop("sha256")
    change_record(folder, **changes, sha256=json_hash(content))


def remove_column(folder: Path) -> None:
    path = folder / "results.csv"
    pd.read_csv(path).drop(columns="metric").to_csv(path, index=False)


def keep_only_header(folder: Path) -> None:
    path = folder / "results.csv"
    path.write_text(path.read_text().splitlines()[0] + "\n")


def add_text_as_value(folder: Path) -> None:
    path = folder / "results.csv"
    path.write_text(path.read_text() + "digits,b,m,0,ood,d,far,auroc,high\n")


BROKEN: dict[str, tuple[Callable[[Path], object], str]] = {
    "no record": (lambda f: (f / "bench.json").unlink(), "holds no benchmark"),
    "no results": (lambda f: (f / "results.csv").unlink(), "it has no results.csv"),
    "empty results": (lambda f: (f / "results.csv").write_text(""), "results.csv is empty"),
    "only a header": (keep_only_header, "holds no figures"),
    "no metric": (remove_column, "lacks the columns metric"),
    "no number": (add_text_as_value, "value has a value that is no number"),
    "older format": (lambda f: change_record(f, format=0), "has format 0; .* Run the same dpn"),
    "no format": (lambda f: change_record(f, format=None), "has no format"),
    "newer format": (lambda f: change_record(f, format=3), "newer than 2: update dpn-plugin"),
    "not JSON": (lambda f: (f / "bench.json").write_text("{"), "bench.json is damaged: Expecting"),
    "a list": (lambda f: (f / "bench.json").write_text("[]"), "damaged: it is not a JSON object"),
    "wrong type": (lambda f: change_record_and_hash(f, seeds="three"), "is damaged: seeds"),
    "null title": (lambda f: change_record_and_hash(f, title=None), "is damaged: title"),
    "changed title": (lambda f: change_record(f, title="Better"), "does not match its hash"),
}


@pytest.mark.parametrize("name", BROKEN)
def test_a_folder_that_cannot_be_reported_on_is_refused_with_a_message(
    name: str, bench: Path, tmp_path: Path
) -> None:
    folder = shutil.copytree(bench, tmp_path / "bench", ignore=shutil.ignore_patterns("store"))
    damage, message = BROKEN[name]
    damage(folder)
    with pytest.raises(UserError, match=message) as caught:
        load_results([folder])
    assert str(folder) in str(caught.value)
    with pytest.raises(UserError, match=message):
        write_report(folder)
    assert not (folder / "report.html").exists()


def test_no_folder_and_several_folders_without_out_are_refused(bench: Path) -> None:
    with pytest.raises(UserError, match="at least one folder"):
        load_results([])
    with pytest.raises(UserError, match="out must name a folder"):
        write_report([bench, bench])


def test_folders_of_other_backbones_and_seeds_are_joined(tmp_path: Path) -> None:
    parts = {
        "one": SampleBench(seeds=(0, 1), methods=("oe",)),
        "two": SampleBench(seeds=(2,), methods=("oe",)),
        "other": SampleBench(backbone="resnet18", seeds=(0,), methods=("oe",)),
    }
    folders = [part.write(tmp_path / name) for name, part in parts.items()]
    joined = load_results(folders)
    seeds = {scope.backbone: joined.rows(scope)["n"].max() for scope in joined.scopes()}
    assert list(seeds.items()) == [("test_resnet", 3), ("resnet18", 1)]
    every = pd.concat([pd.read_csv(folder / "results.csv") for folder in folders[:2]])
    expected = every[every["metric"].eq("accuracy")]["value"].mean()
    rows = joined.summary[joined.summary["metric"].eq("accuracy")]
    assert rows["mean"].iloc[0] == pytest.approx(expected)


def test_a_folder_that_is_given_twice_counts_once(bench: Path, tmp_path: Path) -> None:
    copy = shutil.copytree(bench, tmp_path / "copy")
    pd.testing.assert_frame_equal(
        load_results([bench, bench, copy]).summary, load_results([bench]).summary
    )


def test_folders_with_different_values_are_refused_naming_both(bench: Path, tmp_path: Path) -> None:
    other = SampleBench(samples=200).write(tmp_path / "other")
    with pytest.raises(UserError, match="two figures for suite=digits") as caught:
        load_results([bench, other])
    assert str(bench) in str(caught.value)
    assert str(other) in str(caught.value)


def test_a_set_called_na_keeps_its_name(tmp_path: Path) -> None:
    folder = SampleBench(far=("NA",), methods=("oe",), seeds=(0,)).write(tmp_path / "bench")
    assert "NA" in set(load_results([folder]).summary["dataset"])
