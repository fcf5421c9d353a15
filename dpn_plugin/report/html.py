"""The report as one self-contained HTML page, which makes no requests."""

import base64
import hashlib
from collections.abc import Iterable
from dataclasses import dataclass
from importlib.resources import files
from typing import Any

from jinja2 import Environment, PackageLoader, StrictUndefined
from markupsafe import Markup

from dpn_plugin import __version__
from dpn_plugin.bench import BenchRecord
from dpn_plugin.metrics import PairedDifference
from dpn_plugin.report.cautions import cautions
from dpn_plugin.report.figures import FigureSet
from dpn_plugin.report.figures.style import ReportFigure
from dpn_plugin.report.intervals import HeadlineInterval, headline_interval
from dpn_plugin.report.names import dataset_title, metric
from dpn_plugin.report.openood import HEADS, TEXTS, AgainstOpenOOD
from dpn_plugin.report.paired import PairedRow
from dpn_plugin.report.paired_text import paired_sentences, points
from dpn_plugin.report.ranking import (
    LEADERBOARD_METRICS,
    Headline,
    Lead,
    LeaderboardRow,
    headlines,
    leaderboard_rows,
)
from dpn_plugin.report.results import Results, Scope
from dpn_plugin.report.samples import SampleSet, group_note, group_title
from dpn_plugin.report.searches import COLUMNS as SEARCH_COLUMNS
from dpn_plugin.report.searches import SearchRow
from dpn_plugin.report.tables import Table, paper_rows

#: the leaderboard's filters: attribute of a row, label
_FILTERS = {
    "suite": "Suite",
    "backbone": "Backbone",
    "method": "Method",
    "detector": "Detector",
    "dataset": "OOD set",
}


@dataclass(frozen=True)
class Filter:
    """
    A filter of the leaderboard.

    :param name: attribute of a row
    :param label: its label
    :param options: the titles of the values
    :param selected: the value that is selected at first, empty for all
    """

    name: str
    label: str
    options: dict[str, str]
    selected: str


@dataclass(frozen=True)
class NotRunRow:
    """Something that was not run, and why; a field that is empty stands for all of its kind."""

    backbone: str | None
    method: str | None
    detector: str | None
    dataset: str | None
    reason: str
    seeds: str


@dataclass(frozen=True)
class Card:
    """
    A headline as the page shows it.

    :param headline: the winner and its leads
    :param interval: of the winner's AUROC
    :param accuracy: of its networks
    :param leads: every lead with what the winner is ahead of, and the interval of the difference
        if scores are stored
    """

    headline: Headline
    interval: HeadlineInterval | None
    accuracy: float | None
    leads: tuple[tuple[Lead, str, PairedDifference | None], ...]


def html_page(
    results: Results,
    tables: list[Table],
    figure_sets: list[FigureSet],
    sample_sets: list[SampleSet],
    paired: list[PairedRow],
    searches: list[SearchRow],
    openood: AgainstOpenOOD | None = None,
) -> str:
    """Return the report as HTML; users' names are escaped, styles and script are embedded."""
    rows, shown = leaderboard_rows(results), headlines(results)
    return (
        _environment()
        .get_template("report.html.j2")
        .render(
            **_assets(),
            version=__version__,
            title=" · ".join(dict.fromkeys(record.title for record in results.records)),
            results=results,
            records=results.records,
            cards=[_card(results, each, paired) for each in shown],
            cautions=cautions(results, shown),
            leaderboard=rows,
            metrics=[metric(name) for name in LEADERBOARD_METRICS],
            filters=_filters(rows),
            tables=tables,
            paired=paired,
            searches=searches,
            search_columns=SEARCH_COLUMNS,
            paired_sentences=paired_sentences(paired),
            figure_sets=figure_sets,
            sample_sets=sample_sets,
            paper_rows=paper_rows(results),
            openood=openood,
            openood_heads=HEADS,
            openood_texts=TEXTS,
            not_run=_not_run_rows(results.records),
            not_run_counts=_not_run_counts(results.records),
        )
    )


def _environment() -> Environment:
    environment = Environment(
        loader=PackageLoader("dpn_plugin.report", "assets"),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.filters |= {
        "duration": _duration,
        "data_url": _data_url,
        "group_title": group_title,
        "group_note": group_note,
        "points": points,
        "dataset_title": dataset_title,
    }
    return environment


def _assets() -> dict[str, Any]:
    folder = files("dpn_plugin.report") / "assets"
    style, script = (
        (folder / name).read_text(encoding="utf-8") for name in ("report.css", "report.js")
    )
    # the browser runs this style and this script and refuses every other, and every request
    policy = (
        f"default-src 'none'; img-src data:; style-src {_source(style)}; "
        f"script-src {_source(script)}; base-uri 'none'; form-action 'none'"
    )
    # files of this package, not of users
    own = {"style": Markup(style), "script": Markup(script)}  # nosec B704
    return {**own, "policy": policy}


def _source(text: str) -> str:
    """Return the hash with which a content security policy allows an embedded text."""
    digest = hashlib.sha256(text.encode()).digest()
    return f"'sha256-{base64.b64encode(digest).decode()}'"


def _filters(rows: list[LeaderboardRow]) -> list[Filter]:
    found = []
    for name, label in _FILTERS.items():
        titles = {getattr(row, name): getattr(row, name) for row in rows}
        if name == "dataset":
            titles = _dataset_titles(rows)
        # the page starts with one group of sets, and with all of everything else
        groups = ("near", "far") if name == "dataset" else ()
        selected = next((group for group in groups if group in titles), "")
        if len(titles) > 1:
            found.append(Filter(name, label, dict(sorted(titles.items())), selected))
    return found


def _dataset_titles(rows: list[LeaderboardRow]) -> dict[str, str]:
    """Return the titles of sets and groups by name."""
    titles: dict[str, str] = {}
    for row in rows:
        # a group may be one set in one suite, and the mean of several in another
        if titles.setdefault(row.dataset, row.dataset_title) != row.dataset_title:
            titles[row.dataset] = dataset_title(row.dataset)
    return titles


def _card(results: Results, headline: Headline, paired: list[PairedRow]) -> Card:
    scope, winner = Scope(headline.suite, headline.winner.backbone), headline.winner
    rows = results.rows(scope)
    is_accuracy = rows["task"].eq("classification") & rows["metric"].eq("accuracy")
    chosen = rows[is_accuracy & rows["method"].eq(winner.method)]["mean"].dropna()
    accuracy = float(chosen.iloc[0]) if len(chosen) else None
    differences = {
        row.other: row.paired
        for row in paired
        if row.scope == scope
        and row.dataset == headline.group
        and row.reference == (winner.method, winner.detector)
    }
    roles = {
        "the best of the other methods": headline.runner_up,
        "the usual yardstick": headline.baseline,
    }
    leads = tuple(
        (lead, role, differences.get((lead.over.method, lead.over.detector)))
        for role, lead in roles.items()
        if lead is not None
    )
    return Card(headline, headline_interval(results, headline), accuracy, leads)


def _not_run_counts(records: Iterable[BenchRecord]) -> str:
    """Return how many methods, detectors and sets were not run, for one network or for all."""
    kinds: dict[str, set[str | None]] = {"method": set(), "detector": set(), "set": set()}
    for each in (entry for record in records for entry in record.not_run):
        if each.detector is not None:
            kinds["detector"].add(each.detector)
        elif each.dataset is not None:
            kinds["set"].add(each.dataset)
        else:
            kinds["method"].add(each.method)
    counts = [
        f"{len(names)} {kind}{'' if len(names) == 1 else 's'}"
        for kind, names in kinds.items()
        if names
    ]
    return " and ".join(filter(None, [", ".join(counts[:-1]), *counts[-1:]]))


def _not_run_rows(records: Iterable[BenchRecord]) -> list[NotRunRow]:
    """Return what was not run; seeds with the same reason share a row."""
    seeds: dict[tuple[str | None, str | None, str | None, str | None, str], list[str]] = {}
    for each in (entry for record in records for entry in record.not_run):
        key = each.backbone, each.method, each.detector, each.dataset, each.reason
        seeds.setdefault(key, []).extend([] if each.seed is None else [str(each.seed)])
    return [NotRunRow(*key, ", ".join(dict.fromkeys(own))) for key, own in seeds.items()]


def _data_url(figure: ReportFigure) -> str:
    return f"data:image/png;base64,{base64.b64encode(figure.png).decode()}"


def _duration(seconds: float) -> str:
    minutes, rest = divmod(round(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    if hours:
        return f"{hours} h {minutes} min"
    return f"{minutes} min {rest} s" if minutes else f"{seconds:.1f} s"
