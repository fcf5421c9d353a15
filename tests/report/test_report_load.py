"""What can be wrong with the folders of a report, and how several become one."""

import json
import shutil
from collections.abc import Callable
from pathlib import Path

import pandas as pd
import pytest
from sample_bench import SampleBench

from dpn_plugin.errors import UserError
from dpn_plugin.report import write_report
from dpn_plugin.report.load import load_results


def changed_record(folder: Path, **changes: object) -> None:
    path = folder / "bench.json"
    path.write_text(json.dumps(json.loads(path.read_text()) | changes))


def without_column(folder: Path) -> None:
    path = folder / "results.csv"
    pd.read_csv(path).drop(columns="metric").to_csv(path, index=False)


def only_a_header(folder: Path) -> None:
    path = folder / "results.csv"
    path.write_text(path.read_text().splitlines()[0] + "\n")


def no_number(folder: Path) -> None:
    path = folder / "results.csv"
    path.write_text(path.read_text() + "digits,b,m,0,ood,d,far,auroc,high\n")


BROKEN: dict[str, tuple[Callable[[Path], object], str]] = {
    "no record": (lambda f: (f / "bench.json").unlink(), "holds no benchmark"),
    "no results": (lambda f: (f / "results.csv").unlink(), "it has no results.csv"),
    "empty results": (lambda f: (f / "results.csv").write_text(""), "results.csv is empty"),
    "only a header": (only_a_header, "holds no figures"),
    "no metric": (without_column, "lacks the columns metric"),
    "no number": (no_number, "value holds what is no number"),
    "older format": (lambda f: changed_record(f, format=0), "has format 0; .* Run the same dpn"),
    "no format": (lambda f: changed_record(f, format=None), "has no format"),
    "newer format": (lambda f: changed_record(f, format=2), "update dpn-plugin"),
    "not JSON": (lambda f: (f / "bench.json").write_text("{"), "damaged or not JSON"),
    "a list": (lambda f: (f / "bench.json").write_text("[]"), "has no format"),
    "wrong type": (lambda f: changed_record(f, seeds="three"), "is damaged: seeds"),
}


@pytest.mark.parametrize("name", BROKEN)
def test_a_folder_that_cannot_be_reported_on_is_told_in_a_sentence(
    name: str, bench: Path, tmp_path: Path
) -> None:
    folder = shutil.copytree(bench, tmp_path / "bench", ignore=shutil.ignore_patterns("store"))
    damage, words = BROKEN[name]
    damage(folder)
    with pytest.raises(UserError, match=words) as caught:
        load_results([folder])
    assert str(folder) in str(caught.value)
    with pytest.raises(UserError, match=words):
        write_report(folder)
    assert not (folder / "report.html").exists()


def test_no_folder_and_no_place_for_several_are_refused(bench: Path) -> None:
    with pytest.raises(UserError, match="at least one folder"):
        load_results([])
    with pytest.raises(UserError, match="out must name a folder"):
        write_report([bench, bench])


def test_other_backbones_and_other_seeds_join(tmp_path: Path) -> None:
    parts = {
        "one": SampleBench(seeds=(0, 1), methods=("oe",)),
        "two": SampleBench(seeds=(2,), methods=("oe",)),
        "other": SampleBench(backbone="resnet18", seeds=(0,), methods=("oe",)),
    }
    folders = [part.write(tmp_path / name) for name, part in parts.items()]
    joined = load_results(folders)
    assert [(each.backbone, joined.seeds(each)) for each in joined.subjects()] == [
        ("test_resnet", 3),
        ("resnet18", 1),
    ]
    every = pd.concat([pd.read_csv(folder / "results.csv") for folder in folders[:2]])
    expected = every[every["metric"].eq("accuracy")]["value"].mean()
    rows = joined.summary[joined.summary["metric"].eq("accuracy")]
    assert rows["mean"].iloc[0] == pytest.approx(expected)


def test_the_same_folder_twice_counts_once(bench: Path, tmp_path: Path) -> None:
    copy = shutil.copytree(bench, tmp_path / "copy")
    pd.testing.assert_frame_equal(
        load_results([bench, bench, copy]).summary, load_results([bench]).summary
    )


def test_two_folders_that_disagree_are_refused_naming_both(bench: Path, tmp_path: Path) -> None:
    other = SampleBench(samples=200).write(tmp_path / "other")
    with pytest.raises(UserError, match="two figures for suite=digits") as caught:
        load_results([bench, other])
    assert str(bench) in str(caught.value)
    assert str(other) in str(caught.value)


def test_a_set_called_na_keeps_its_name(tmp_path: Path) -> None:
    folder = SampleBench(far=("NA",), methods=("oe",), seeds=(0,)).write(tmp_path / "bench")
    assert "NA" in set(load_results([folder]).summary["dataset"])
