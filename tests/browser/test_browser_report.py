"""The report in a browser: it sorts, filters, folds and prints, and makes no requests."""

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

DESKTOP = {"width": 1280, "height": 900}
PHONE = {"width": 375, "height": 740}

Opened = Callable[..., object]


@pytest.fixture
def opened(browser, report: Path) -> Iterator[Opened]:
    """A function that opens the page; messages on the console and requests fail the test."""
    problems: list[str] = []
    contexts = []

    def open_page(anchor: str = "", **settings: object):
        contexts.append(browser.new_context(**{"viewport": DESKTOP, **settings}))
        page = contexts[-1].new_page()
        address = report.as_uri()
        page.on("console", lambda message: problems.append(f"console: {message.text}"))
        page.on("pageerror", lambda error: problems.append(f"error: {error}"))
        page.on(
            "request",
            lambda request: (
                request.url.startswith(("data:", address)) or problems.append(request.url)
            ),
        )
        page.goto(address + anchor)
        return page

    yield open_page
    for context in contexts:
        context.close()
    assert not problems


def column(page, name: str) -> list[str]:
    """Return the values of a column of the leaderboard in the visible rows."""
    heads = page.locator("#standings thead th").all_inner_texts()
    index = [head.strip() for head in heads].index(name) + 1
    cells = page.locator(f"#standings tbody tr:not([hidden]) td:nth-child({index})")
    return cells.evaluate_all("cells => cells.map(cell => cell.dataset.value)")


def head(page, name: str):
    return page.locator("#standings thead th", has_text=name)


def test_the_leaderboard_starts_with_the_best_near_results(opened: Opened) -> None:
    page = opened()
    assert set(column(page, "OOD set")) == {"Near (mean)"}
    values = [float(value) for value in column(page, "AUROC")]
    assert len(values) == 4
    assert values == sorted(values, reverse=True)


def test_the_notice_below_the_cards_names_few_epochs_and_few_samples(opened: Opened) -> None:
    page = opened()
    notice = page.locator("#outcome .notice").inner_text()
    assert "trained for 1 epoch; the suite asks for 8" in notice
    assert "fewer than 1,000 samples" in notice
    assert "best of 4 (near) and of 4 (far) pairs" in notice
    for card in page.locator(".card").all_inner_texts():
        assert "95 % interval" in card
        assert "Best of 4 pairs of method and detector on the test data" in card


def test_a_click_on_a_heading_sorts_and_a_second_one_reverses(opened: Opened) -> None:
    page = opened()
    button = head(page, "FPR95").get_by_role("button")
    for order, reverse in (("ascending", False), ("descending", True)):
        button.click()
        assert head(page, "FPR95").get_attribute("aria-sort") == order
        values = [float(value) for value in column(page, "FPR95")]
        assert values == sorted(values, reverse=reverse)
    assert head(page, "AUROC").get_attribute("aria-sort") is None


def test_the_keyboard_can_sort(opened: Opened) -> None:
    page = opened()
    head(page, "Detector").get_by_role("button").focus()
    page.keyboard.press("Enter")
    assert column(page, "Detector") == sorted(column(page, "Detector"))
    page.keyboard.press("Space")
    assert column(page, "Detector") == sorted(column(page, "Detector"), reverse=True)


def test_filters_are_combined_and_reset(opened: Opened) -> None:
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
    page.wait_for_function("() => document.querySelector('#count').textContent.startsWith('4 of')")


def test_links_scroll_to_their_sections(opened: Opened) -> None:
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


def test_colours_follow_the_preferred_scheme(opened: Opened) -> None:
    assert luminance(opened(color_scheme="light")) > 200
    assert luminance(opened(color_scheme="dark")) < 60


def test_every_figure_is_shown(opened: Opened) -> None:
    images = opened().locator("figure img")
    assert images.count() >= 5
    assert images.evaluate_all("all => all.every(each => each.naturalWidth > 400)")


def test_samples_are_shown_with_class_scores_and_sources(opened: Opened) -> None:
    page = opened()
    methods = page.locator("#samples > details")
    assert methods.locator("> summary").all_inner_texts() == ["baseline", "oe"]
    assert methods.evaluate_all("all => all.map(each => each.open)") == [True, False]
    methods.last.locator("> summary").click()
    cards = methods.last.locator(".sample")
    # five OOD sets, rejected and misclassified ones: at most six of each
    assert 6 <= cards.count() <= 7 * 6
    assert page.locator("#samples .sample img").evaluate_all(
        "all => all.every(each => each.naturalWidth > 0 && each.alt.startsWith('Sample '))"
    )
    first = cards.first
    assert "predicted" in first.inner_text()
    assert "Max.P" in first.inner_text()
    # the three parts of the bar are the three probabilities, and fill it
    widths = first.locator("svg rect").evaluate_all("all => all.map(e => +e.getAttribute('width'))")
    assert len(widths) == 3
    assert sum(widths) == pytest.approx(100, abs=0.1)
    assert page.locator(".sample svg").first.bounding_box()["height"] > 4
    assert not first.locator("details dl").is_visible()
    first.locator("summary").click()
    assert first.locator("details dt").all_inner_texts() == [
        "dpn-maxp",
        "dpn-entropy",
        "dpn-mi",
        "dpn-precision",
        "dpn-dent",
    ]


def test_a_phone_scrolls_rows_of_samples_sideways(opened: Opened) -> None:
    row = opened(viewport=PHONE).locator("#samples .thumbs:has(li:nth-child(4))").first
    assert row.evaluate("each => each.scrollWidth > each.clientWidth")
    tops = row.locator(".sample").evaluate_all("all => all.map(e => e.getBoundingClientRect().top)")
    assert len(set(tops)) == 1
    row.focus()
    assert row.evaluate("each => each === document.activeElement")


def test_a_printed_page_is_unfolded_and_has_no_controls(opened: Opened) -> None:
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


def test_without_scripts_all_rows_are_visible(opened: Opened) -> None:
    page = opened(java_script_enabled=False)
    assert not page.locator("#filters").is_visible()
    rows = page.locator("#standings tbody tr")
    assert rows.count() == 28
    assert rows.last.is_visible()
