"""The content of the page: complete, self-contained, escaped."""

import re
from html.parser import HTMLParser
from pathlib import Path

import pandas as pd
import pytest
from paper_bench import paper_bench
from sample_bench import SampleBench

from dpn_plugin.report import write_report
from dpn_plugin.report.figures import FigureSet
from dpn_plugin.report.html import html_page
from dpn_plugin.report.paired import paired_rows
from dpn_plugin.report.results import load_results
from dpn_plugin.report.tables import result_tables


class Page(HTMLParser):
    """Collects all tags with their attributes, and the text outside of style and script."""

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


def page_without_figures(folder: Path) -> Page:
    results = load_results([folder])
    figure_sets = [FigureSet(scope) for scope in results.scopes()]
    return Page(
        html_page(results, result_tables(results), figure_sets, [], paired_rows(results), [])
    )


def test_the_page_makes_no_requests(page: Page) -> None:
    for _, attributes in page.tags:
        assert (attributes.get("src") or "data:").startswith("data:")
        assert (attributes.get("href") or "#").startswith(("#", "data:"))
        assert "style" not in attributes  # the content security policy would block it
    assert "default-src 'none'" in page.of("meta")[1]["content"]


def test_links_point_to_anchors_and_anchors_are_unique(page: Page) -> None:
    anchors = [each["id"] for _, each in page.tags if "id" in each]
    assert len(anchors) == len(set(anchors))
    links = {each["href"][1:] for each in page.of("a")}
    assert links
    assert links <= set(anchors)


def test_the_page_describes_what_was_run(page: Page) -> None:
    for text in (
        "Handwritten digits against letters",
        "dpn bench digits --backbone test_resnet",
        "npz:letters.npz, 240 samples",
        "sklearn:digits, 1,500 samples; 5 classes",
        "sklearn:digits, 240 samples; a part that was kept back from training",
        "outliers: npz:outliers.npz classes=0-169, 4,321 samples",
        "dpn-plugin 0.1.0, torch 2.9.0",
        "1 min 23 s on cpu",
        "3 seeds",
        "dpn-minus with dpn-mi",
        "points ahead of oe with dpn-mi",
    ):
        assert text in page.text


def test_every_ood_result_is_in_the_leaderboard(bench: Path, page: Page) -> None:
    raw = pd.read_csv(bench / "results.csv")
    ood = raw[raw["task"].eq("ood")].drop_duplicates(["method", "detector", "dataset"])
    rows = [each for each in page.of("tr") if "data-method" in each]
    keys = [(each["data-method"], each["data-detector"], each["data-dataset"]) for each in rows]
    assert len(keys) == len(set(keys))
    # the only near set is shown once, as the mean of its group
    expected = ood[ood["dataset"].ne("letters")][["method", "detector", "dataset"]]
    assert set(keys) == set(expected.itertuples(index=False))
    assert "letters (near)" in page.text


def test_figures_have_alternative_text(page: Page) -> None:
    assert len(page.of("img")) >= 5
    assert all(len(each["alt"]) > 40 for each in page.of("img"))


def test_names_are_escaped(tmp_path: Path) -> None:
    markup = "<img src=x onerror=alert(1)>\"'&$_{"
    sample = SampleBench(
        title=markup, methods=("baseline", markup.replace("/", "")), far=(markup,), seeds=(0,),
        warnings=(markup,), not_run=({"method": markup, "reason": markup},),
    )  # fmt: skip
    page = Page(write_report(sample.write(tmp_path)).read_text("utf-8"))
    assert not [each for _, each in page.tags if "onerror" in each]
    assert len([each for each in page.of("img") if each["src"] == "x"]) == 0
    assert page.text.count(markup) > 10


def test_one_seed_and_missing_near_sets_are_pointed_out(tmp_path: Path) -> None:
    page = page_without_figures(SampleBench(near=(), seeds=(0,)).write(tmp_path))
    assert "has no near OOD sets" in page.text
    assert "One seed says nothing about the spread" in page.text
    assert "±" not in re.sub("mean ± standard deviation|no ±", "", page.text)


def test_warnings_and_what_was_not_run_are_shown_with_reasons(tmp_path: Path) -> None:
    left_out = [
        {"backbone": "net", "method": "mcdp", "seed": seed, "reason": "It has no dropout."}
        for seed in (0, 1)
    ]
    sample = SampleBench(seeds=(0,), warnings=("Classes overlap.",), not_run=tuple(left_out))
    page = page_without_figures(sample.write(tmp_path))
    assert "Classes overlap." in page.text
    assert "Not run, with at least one network: 1 method. Which and why." in page.text
    assert "#not-run" in [each["href"] for each in page.of("a")]
    # seeds that share a reason share a row
    assert page.text.count("It has no dropout.") == 1
    assert "net mcdp 0, 1 all all It has no dropout." in page.text


def test_methods_detectors_and_sets_that_were_not_run_are_counted_once(tmp_path: Path) -> None:
    left_out = [
        *(
            {"method": method, "seed": seed, "detector": detector, "reason": "no"}
            for method in "ab"
            for seed in (0, 1)
            for detector in ("odin", "vim", "knn")
        ),
        {"method": "mcdp", "seed": 0, "reason": "It has no dropout."},
        {"dataset": "svhn", "reason": "It is missing."},
    ]
    page = page_without_figures(SampleBench(not_run=tuple(left_out)).write(tmp_path))
    assert "network: 1 method, 3 detectors and 1 set. Which and why." in page.text


def test_what_was_run_shows_selections_epochs_and_limits(tmp_path: Path) -> None:
    sample = SampleBench(seeds=(0,), selection="classes=7-9, limit=300", epochs=1, limit=300)
    text = page_without_figures(sample.write(tmp_path)).text
    shown = text[text.rindex("What was run") :]
    assert "letters: npz:letters.npz classes=7-9, limit=300, 240 samples" in shown
    assert "1; the suite asks for 8" in shown
    assert "300 samples of every set" in shown


def test_cards_name_the_interval_the_accuracy_and_the_choice_on_test_data(page: Page) -> None:
    card = page.text[page.text.index("Near OOD") : page.text.index("Far OOD")]
    assert re.search(r"95 % interval [\d.]+ to [\d.]+ % \(DeLong\)", card)
    assert "Best of 9 pairs of method and detector on the test data" in card
    assert re.search(r"test_resnet, 3 seeds, accuracy [\d.]+ %", card)


def test_a_single_pair_is_not_the_best_of_several(tmp_path: Path) -> None:
    folder = SampleBench(methods=("oe",), seeds=(0,)).write(tmp_path)
    rows = pd.read_csv(folder / "results.csv")
    one = ~rows["detector"].isin(["dpn-mi", "dpn-maxp"])
    rows[one].to_csv(folder / "results.csv", index=False)
    text = page_without_figures(folder).text
    assert "Best of" not in text
    assert "best of 1" not in text


def test_the_values_of_the_paper_are_shown_beside_ours(tmp_path: Path) -> None:
    # the paper has 99.0 ± 0.1 for this figure
    folder = paper_bench(tmp_path, "c10", {("dpn-minus", "dpn-mi", "tinyimagenet"): [0.984]})
    page = page_without_figures(folder)
    assert "Beside the paper" in page.text
    assert "99.0 ± 0.1" in page.text
    assert "\N{MINUS SIGN}0.6" in page.text


def test_without_stored_outputs_there_are_tables_and_a_message(tmp_path: Path) -> None:
    folder = SampleBench(seeds=(0,)).write(tmp_path)
    (folder / "store").rename(folder / "elsewhere")
    page = Page(write_report(folder).read_text("utf-8"))
    assert "are missing or damaged" in page.text
    assert page.of("table")
