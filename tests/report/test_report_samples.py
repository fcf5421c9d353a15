"""The test images on the page: complete, in one file, absent where there are none."""

import re
from pathlib import Path

import pytest
import torch
from sample_bench import SampleBench

from dpn_plugin._records import write_record
from dpn_plugin.evaluation import SampleGroup, SamplesRecord, ShownSample
from dpn_plugin.evaluation.record import Identity
from dpn_plugin.evaluation.sample_record import Sources
from dpn_plugin.evaluation.samples import thumbnail
from dpn_plugin.report import samples as report_samples
from dpn_plugin.report import update_report, write_report
from dpn_plugin.report.results import load_results

PNG = thumbnail(torch.arange(64, dtype=torch.uint8).reshape(1, 8, 8))


def shown(index: int, actual: str | None = None, sources: Sources | None = None) -> ShownSample:
    return ShownSample(
        index=index,
        predicted="seven",
        actual=actual,
        confidence=0.875,
        scores={"dpn-maxp": 0.125, "dpn-mi": 0.0625},
        sources=sources,
        png=PNG,
    )


def samples_record(**changes: object) -> SamplesRecord:
    sources = Sources(correct=0.6, misclassified=0.3, ood=0.1)
    groups = [
        SampleGroup(
            kind="accepted",
            group="near",
            dataset="letters",
            count=1234,
            total=4936,
            samples=[shown(3, sources=sources), shown(8)],
        ),
        SampleGroup(kind="rejected", count=1, total=240, samples=[shown(5, "one")]),
        SampleGroup(kind="misclassified", count=0, total=240, samples=[]),
    ]
    given = {
        "identity": Identity(outputs={}, versions={}),
        "detector": "dpn-mi",
        "threshold": 0.25,
        "groups": groups,
    }
    return SamplesRecord.model_validate({**given, **changes})


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return SampleBench(methods=("baseline", "oe"), seeds=(0, 1), samples=40).write(tmp_path)


def write_samples(folder: Path, method: str, seed: int, **changes: object) -> Path:
    path = folder / f"runs/test_resnet/{method}/seed-{seed}/samples.json"
    write_record(path, samples_record(**changes))
    return path


@pytest.fixture(autouse=True)
def no_figures(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("dpn_plugin.report.figures._FIGURES", {})


def section(page: Path) -> str:
    text = page.read_text("utf-8")
    found = re.search(r'<section id="samples".*?</section>', text, re.DOTALL)
    return found[0] if found else ""


def test_the_page_shows_images_classes_scores_and_sources(folder: Path) -> None:
    for method in ("baseline", "oe"):
        write_samples(folder, method, 0)
    page = section(write_report(folder))
    assert page.count(f'src="data:image/png;base64,{PNG}"') == 6
    assert "Accepted although OOD: letters (near)" in page
    assert "1,234 of 4,936 OOD samples (25.0 %), lowest scores first." in page
    assert "0 of 240 in-domain samples." in page
    assert "<strong>seven</strong>" in page
    assert '<span class="soft">is</span> one' in page
    assert "<dt>dpn-mi</dt><dd>0.0625</dd>" in page
    assert "correct 60 %, misclassified 30 %, OOD 10 %" in page
    assert page.count("<svg") == 2  # of the one sample with probabilities, for each method
    assert re.findall(r"<summary>([a-z-]+)</summary>", page) == ["baseline", "oe"]


def test_the_lowest_seed_of_a_method_is_shown(folder: Path) -> None:
    write_samples(folder, "oe", 0)
    write_samples(folder, "oe", 1, detector="dpn-maxp")
    (found,) = report_samples.find_samples(load_results([folder]))
    assert [(each.method, each.seed) for each in found.methods] == [("oe", 0)]


def test_without_samples_there_is_no_section(folder: Path) -> None:
    page = write_report(folder)
    assert section(page) == ""
    assert "#samples" not in page.read_text("utf-8")


def test_a_damaged_file_and_a_reason_are_named(folder: Path) -> None:
    path = write_samples(folder, "baseline", 0)
    path.write_text(path.read_text("utf-8").replace("0.875", "0.999"), "utf-8")
    write_samples(folder, "oe", 0, groups=[], reason="the scores are not finite.")
    page = section(write_report(folder))
    assert re.search(r"Not shown: .*samples\.json is damaged", page)
    assert "Not shown: test_resnet oe seed 0: the scores are not finite." in page
    assert "data:image" not in page


def test_changed_samples_cause_a_new_report(folder: Path) -> None:
    page = update_report(folder)
    write_samples(folder, "baseline", 0)
    assert section(update_report(folder))
    before = page.stat().st_ino
    update_report(folder)
    assert page.stat().st_ino == before
    write_samples(folder, "baseline", 0, threshold=0.375)
    assert "threshold 0.375" in section(update_report(folder))
