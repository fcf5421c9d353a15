"""``dpn report`` and ``dpn plot``."""

import json
import shutil
from pathlib import Path

import pytest
from click.testing import Result
from sample_bench import SampleBench
from typer.testing import CliRunner

from dpn_plugin.cli import app


def dpn(*arguments: object) -> Result:
    return CliRunner().invoke(app, [str(each) for each in arguments], prog_name="dpn")


def test_report_joins_folders_without_their_outputs(tmp_path: Path) -> None:
    folders = [
        SampleBench(backbone=name, seeds=(0,)).write(tmp_path / name)
        for name in ("test_resnet", "resnet18")
    ]
    # tables need no outputs, which may still be on another machine
    shutil.rmtree(folders[0] / "store")
    shutil.rmtree(folders[1] / "runs")
    done = dpn("report", *folders, "--out", tmp_path / "both", "--json")
    assert done.exit_code == 0, done.output
    page = Path(json.loads(done.stdout)["report"])
    assert page == tmp_path / "both" / "report.html"
    text = page.read_text()
    assert "test_resnet on digits" in text
    assert "resnet18 on digits" in text
    names = {path.name for path in (tmp_path / "both" / "tables").iterdir()}
    assert {"tables.md", "tables.tex", "digits-resnet18-ood-auroc.csv"} <= names


def test_a_report_is_replaced_but_other_files_are_not(tmp_path: Path) -> None:
    bench = SampleBench(seeds=(0,)).write(tmp_path / "bench")
    for _ in range(2):
        assert dpn("report", bench, "--out", tmp_path / "out").exit_code == 0
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine" / "report.html").write_text("mine")
    done = dpn("report", bench, "--out", tmp_path / "mine")
    assert done.exit_code == 2
    assert "holds no report of dpn-plugin, but report.html" in done.stderr
    assert [path.read_text() for path in (tmp_path / "mine").iterdir()] == ["mine"]


def test_report_on_an_empty_folder_is_refused_with_a_message(tmp_path: Path) -> None:
    done = dpn("report", tmp_path)
    assert done.exit_code == 2
    assert done.stderr == f"Error: {tmp_path} holds no benchmark: it has no bench.json.\n"


@pytest.mark.parametrize("suffix", ["png", "svg", "pdf"])
def test_plot_simplex_writes_the_format_of_the_suffix(tmp_path: Path, suffix: str) -> None:
    done = dpn("plot", "simplex", 0.1, 0.1, 0.1, "--out", tmp_path / f"x.{suffix}")
    assert done.exit_code == 0, done.output
    start = {"png": b"\x89PNG", "svg": b"<?xml", "pdf": b"%PDF"}[suffix]
    assert (tmp_path / f"x.{suffix}").read_bytes().startswith(start)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("simplx", 1, 1, 1), "Did you mean 'simplex'?"),
        (("simplex", 1, 1), "needs three concentrations"),
        (("simplex", 1, 1, 1, "--out", "x.jpg"), "must end in .png, .svg or .pdf"),
    ],
    ids=["name", "two", "format"],
)
def test_plot_refuses_bad_arguments(
    arguments: tuple[object, ...], message: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    done = dpn("plot", *arguments)
    assert done.exit_code == 2
    assert message in done.stderr
    assert not list(tmp_path.iterdir())
