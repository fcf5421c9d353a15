"""The report in a real browser: it sorts, filters, folds, prints, and talks to nobody."""

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

DESKTOP = {"width": 1280, "height": 900}
PHONE = {"width": 375, "height": 740}

Opened = Callable[..., object]


@pytest.fixture
def opened(browser, report: Path) -> Iterator[Opened]:
    """A function that opens the page; what it complains about or asks for fails the test."""
    trouble: list[str] = []
    contexts = []

    def open_page(anchor: str = "", **settings: object):
        contexts.append(browser.new_context(**{"viewport": DESKTOP, **settings}))
        page = contexts[-1].new_page()
        address = report.as_uri()
        page.on("console", lambda message: trouble.append(f"console: {message.text}"))
        page.on("pageerror", lambda error: trouble.append(f"error: {error}"))
        page.on(
            "request",
            lambda request: (
                request.url.startswith(("data:", address)) or trouble.append(request.url)
            ),
        )
        page.goto(address + anchor)
        return page

    yield open_page
    for context in contexts:
        context.close()
    assert not trouble


def column(page, name: str) -> list[str]:
    """:return: the values of a column of the leaderboard, in the rows that are shown"""
    heads = page.locator("#standings thead th").all_inner_texts()
    index = [head.strip() for head in heads].index(name) + 1
    cells = page.locator(f"#standings tbody tr:not([hidden]) td:nth-child({index})")
    return cells.evaluate_all("cells => cells.map(cell => cell.dataset.value)")


def head(page, name: str):
    return page.locator("#standings thead th", has_text=name)


def test_the_leaderboard_begins_with_the_best_near_figures(opened: Opened) -> None:
    page = opened()
    assert set(column(page, "OOD set")) == {"Near (mean)"}
    figures = [float(value) for value in column(page, "AUROC")]
    assert len(figures) == 4
    assert figures == sorted(figures, reverse=True)


def test_a_click_on_a_heading_sorts_and_a_second_one_turns_round(opened: Opened) -> None:
    page = opened()
    button = head(page, "FPR95").get_by_role("button")
    for order, reverse in (("ascending", False), ("descending", True)):
        button.click()
        assert head(page, "FPR95").get_attribute("aria-sort") == order
        figures = [float(value) for value in column(page, "FPR95")]
        assert figures == sorted(figures, reverse=reverse)
    assert head(page, "AUROC").get_attribute("aria-sort") is None


def test_the_keyboard_sorts_too(opened: Opened) -> None:
    page = opened()
    head(page, "Detector").get_by_role("button").focus()
    page.keyboard.press("Enter")
    assert column(page, "Detector") == sorted(column(page, "Detector"))
    page.keyboard.press("Space")
    assert column(page, "Detector") == sorted(column(page, "Detector"), reverse=True)


def test_filters_join_and_reset(opened: Opened) -> None:
    page = opened()
    page.get_by_label("Method").select_option("oe")
    page.get_by_label("OOD set").select_option("")
    page.get_by_label("Detector").select_option("dpn-mi")
    assert set(column(page, "Method")) == {"oe"}
    assert set(column(page, "Detector")) == {"dpn-mi"}
    # five sets and two means
    assert len(column(page, "OOD set")) == 7
    total = page.locator("#standings tbody tr").count()
    assert page.locator("#count").inner_text() == f"7 of {total} rows"
    page.get_by_role("button", name="Reset").click()
    page.wait_for_function("document.querySelector('#count').textContent.startsWith('4 of')")


def test_links_lead_where_they_say(opened: Opened) -> None:
    page = opened()
    links = page.locator("nav a")
    assert links.count() >= 5
    for index in range(links.count()):
        link = links.nth(index)
        link.click()
        target = page.locator(link.get_attribute("href"))
        page.wait_for_function(
            "top => Math.abs(top.getBoundingClientRect().top) < innerHeight",
            arg=target.element_handle(),
        )


def test_a_link_to_a_folded_table_unfolds_it(opened: Opened) -> None:
    name = "table-digits-test_resnet-ood-fpr95"
    assert not opened().locator(f"#{name}").evaluate("table => table.open")
    assert opened(f"#{name}").locator(f"#{name}").evaluate("table => table.open")


@pytest.mark.parametrize("viewport", [DESKTOP, PHONE], ids=["desktop", "phone"])
@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_nothing_is_wider_than_the_window(opened: Opened, viewport: dict, scheme: str) -> None:
    page = opened(viewport=viewport, color_scheme=scheme)
    page.evaluate("document.querySelectorAll('details').forEach(each => { each.open = true })")
    width = page.evaluate("document.documentElement.scrollWidth")
    assert width == viewport["width"]


def luminance(page) -> float:
    colour = page.evaluate("getComputedStyle(document.body).backgroundColor")
    return sum(map(int, colour.removeprefix("rgb(").removesuffix(")").split(","))) / 3


def test_light_and_dark_follow_the_reader(opened: Opened) -> None:
    assert luminance(opened(color_scheme="light")) > 200
    assert luminance(opened(color_scheme="dark")) < 60


def test_every_picture_is_shown(opened: Opened) -> None:
    pictures = opened().locator("figure img")
    assert pictures.count() >= 5
    assert pictures.evaluate_all("all => all.every(each => each.naturalWidth > 400)")


def test_on_paper_everything_is_unfolded_and_nothing_waits_for_a_click(opened: Opened) -> None:
    page = opened()
    page.evaluate(
        "addEventListener('beforeprint', () => { window.folded ="
        " document.querySelectorAll('details:not([open])').length })"
    )
    assert page.pdf().startswith(b"%PDF")
    assert page.evaluate("window.folded") == 0
    page.emulate_media(media="print")
    assert not page.locator("nav").is_visible()
    assert not page.locator("#filters").is_visible()


def test_without_scripts_all_rows_are_there(opened: Opened) -> None:
    page = opened(java_script_enabled=False)
    assert not page.locator("#filters").is_visible()
    rows = page.locator("#standings tbody tr")
    assert rows.count() == 28
    assert rows.last.is_visible()
