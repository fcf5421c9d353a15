"""``dpn report`` and ``dpn plot``."""

import json
import shutil
from pathlib import Path

import pytest
from sample_bench import SampleBench
from typer.testing import CliRunner

from dpn_plugin.cli import app


def dpn(*arguments: object):
    return CliRunner().invoke(app, [str(each) for each in arguments], prog_name="dpn")


def test_report_joins_folders_of_other_machines(tmp_path: Path) -> None:
    folders = [
        SampleBench(backbone=name, seeds=(0,)).write(tmp_path / name)
        for name in ("test_resnet", "resnet18")
    ]
    # the outputs stayed where they were made; figures do not need them
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


def test_report_on_nothing_ends_in_a_sentence(tmp_path: Path) -> None:
    done = dpn("report", tmp_path)
    assert done.exit_code == 2
    assert done.stderr == f"Error: {tmp_path} holds no benchmark: it has no bench.json.\n"


@pytest.mark.parametrize("ending", ["png", "svg", "pdf"])
def test_plot_simplex_writes_the_format_of_the_ending(tmp_path: Path, ending: str) -> None:
    done = dpn("plot", "simplex", 0.1, 0.1, 0.1, "--out", tmp_path / f"x.{ending}")
    assert done.exit_code == 0, done.output
    start = {"png": b"\x89PNG", "svg": b"<?xml", "pdf": b"%PDF"}[ending]
    assert (tmp_path / f"x.{ending}").read_bytes().startswith(start)


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (("simplx", 1, 1, 1), "Did you mean 'simplex'?"),
        (("simplex", 1, 1), "needs three concentrations"),
        (("simplex", 1, 1, 1, "--out", "x.jpg"), "must end in .png, .svg or .pdf"),
    ],
    ids=["name", "two", "format"],
)
def test_plot_answers_what_it_cannot_draw(
    arguments: tuple[object, ...], words: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    done = dpn("plot", *arguments)
    assert done.exit_code == 2
    assert words in done.stderr
    assert not list(tmp_path.iterdir())
