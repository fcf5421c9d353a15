"""The page as text: whole, self-contained, escaped."""

import re
from html.parser import HTMLParser
from pathlib import Path

import pandas as pd
import pytest
from sample_bench import SampleBench

from dpn_plugin.report import html, write_report
from dpn_plugin.report.load import load_results
from dpn_plugin.report.pictures import Gallery
from dpn_plugin.report.tables import result_tables


class Page(HTMLParser):
    """All tags with their attributes, and the text outside of style and script."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.tags: list[tuple[str, dict[str, str | None]]] = []
        self.text = ""
        self.hidden = False
        self.feed(text)
        self.text = re.sub(r"\s+", " ", self.text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append((tag, dict(attrs)))
        self.text += " " if tag == "td" else ""
        self.hidden = tag in ("style", "script")

    def handle_endtag(self, tag: str) -> None:
        self.hidden = False

    def handle_data(self, data: str) -> None:
        self.text += "" if self.hidden else data

    def of(self, tag: str) -> list[dict[str, str | None]]:
        return [attributes for name, attributes in self.tags if name == tag]


@pytest.fixture(scope="module")
def page(reported: Path) -> Page:
    return Page((reported / "report.html").read_text("utf-8"))


def without_pictures(folder: Path) -> Page:
    results = load_results([folder])
    galleries = [Gallery(subject, (), ()) for subject in results.subjects()]
    return Page(html.page(results, result_tables(results), galleries))


def test_nothing_is_fetched(page: Page) -> None:
    for _, attributes in page.tags:
        assert (attributes.get("src") or "data:").startswith("data:")
        assert (attributes.get("href") or "#").startswith(("#", "data:"))
        assert "style" not in attributes  # the policy would refuse it
    assert "default-src 'none'" in page.of("meta")[1]["content"]


def test_links_lead_to_anchors_and_anchors_are_unique(page: Page) -> None:
    anchors = [each["id"] for _, each in page.tags if "id" in each]
    assert len(anchors) == len(set(anchors))
    links = {each["href"][1:] for each in page.of("a")}
    assert links
    assert links <= set(anchors)


def test_it_says_what_was_run(page: Page) -> None:
    for words in (
        "Handwritten digits against letters",
        "dpn bench digits --backbone test_resnet",
        "npz:letters.npz, 240 samples",
        "dpn-plugin 0.1.0, torch 2.9.0",
        "1 min 23 s on cpu",
        "3 seeds",
        "dpn-minus with dpn-mi",
        "points ahead of oe with dpn-mi",
    ):
        assert words in page.text


def test_every_ood_figure_is_in_the_leaderboard(bench: Path, page: Page) -> None:
    raw = pd.read_csv(bench / "results.csv")
    ood = raw[raw["task"].eq("ood")].drop_duplicates(["method", "detector", "dataset"])
    rows = [each for each in page.of("tr") if "data-method" in each]
    keys = [(each["data-method"], each["data-detector"], each["data-dataset"]) for each in rows]
    assert len(keys) == len(set(keys))
    assert set(keys) == set(ood[["method", "detector", "dataset"]].itertuples(index=False))


def test_pictures_have_words_for_those_who_do_not_see_them(page: Page) -> None:
    assert len(page.of("img")) >= 5
    assert all(len(each["alt"]) > 40 for each in page.of("img"))


def test_names_are_text_and_never_markup(tmp_path: Path) -> None:
    nasty = "<img src=x onerror=alert(1)>\"'&$_{"
    sample = SampleBench(
        title=nasty, methods=("baseline", nasty.replace("/", "")), far=(nasty,), seeds=(0,),
        warnings=(nasty,), not_run=({"method": nasty, "reason": nasty},),
    )  # fmt: skip
    page = Page(write_report(sample.write(tmp_path)).read_text("utf-8"))
    assert not [each for _, each in page.tags if "onerror" in each]
    assert len([each for each in page.of("img") if each["src"] == "x"]) == 0
    assert page.text.count(nasty) > 10


def test_one_seed_and_no_near_sets_are_said(tmp_path: Path) -> None:
    page = without_pictures(SampleBench(near=(), seeds=(0,)).write(tmp_path))
    assert "has no near OOD sets" in page.text
    assert "One seed says nothing about the spread" in page.text
    assert "±" not in re.sub("mean ± standard deviation|no ±", "", page.text)


def test_warnings_and_what_was_not_run_are_shown_with_reasons(tmp_path: Path) -> None:
    left_out = [
        {"backbone": "net", "method": "mcdp", "seed": seed, "reason": "It has no dropout."}
        for seed in (0, 1)
    ]
    sample = SampleBench(seeds=(0,), warnings=("Classes overlap.",), not_run=tuple(left_out))
    page = without_pictures(sample.write(tmp_path))
    assert "Classes overlap." in page.text
    # seeds that share a reason share a row
    assert page.text.count("It has no dropout.") == 1
    assert "net mcdp 0, 1 all all It has no dropout." in page.text


def test_the_paper_stands_beside_ours_where_there_is_a_comparison(tmp_path: Path) -> None:
    folder = SampleBench(seeds=(0,)).write(tmp_path)
    row = {
        "backbone": "test_resnet", "dataset": "noise", "method": "oe", "detector": "dpn-mi",
        "metric": "auroc", "paper_mean": 0.981, "paper_std": 0.002, "mean": 0.975,
        "std": float("nan"), "n": 1, "difference": -0.006,
    }  # fmt: skip
    pd.DataFrame([row]).to_csv(folder / "comparison.csv", index=False)
    page = without_pictures(folder)
    assert "Beside the paper" in page.text
    assert "98.1 ± 0.2" in page.text
    assert "\N{MINUS SIGN}0.6" in page.text


def test_without_stored_outputs_there_are_tables_and_a_sentence(tmp_path: Path) -> None:
    folder = SampleBench(seeds=(0,)).write(tmp_path)
    (folder / "store").rename(folder / "elsewhere")
    page = Page(write_report(folder).read_text("utf-8"))
    assert "are missing or damaged" in page.text
    assert page.of("table")
