"""One self-contained page: no request leaves it."""

import base64
import hashlib
from importlib.resources import files
from typing import Any

from jinja2 import Environment, PackageLoader, StrictUndefined
from markupsafe import Markup

from dpn_plugin import __version__
from dpn_plugin.report.comparison import comparison
from dpn_plugin.report.figures.style import Picture
from dpn_plugin.report.headline import headlines
from dpn_plugin.report.leaderboard import METRICS, Standing, standings
from dpn_plugin.report.load import Results
from dpn_plugin.report.names import metric
from dpn_plugin.report.pictures import Gallery
from dpn_plugin.report.record import Record
from dpn_plugin.report.tables import Table

__all__ = ["page"]

#: the leaderboard's filters: attribute of a row, label
FILTERS = {
    "suite": "Suite",
    "backbone": "Backbone",
    "method": "Method",
    "detector": "Detector",
    "dataset": "OOD set",
}


def page(results: Results, tables: list[Table], galleries: list[Gallery]) -> str:
    """:return: the report as HTML; names of users are escaped, styles and script are inside"""
    rows = standings(results)
    return (
        _environment()
        .get_template("report.html.j2")
        .render(
            **_assets(),
            version=__version__,
            title=" · ".join(dict.fromkeys(record.title for record in results.records)),
            results=results,
            records=results.records,
            headlines=headlines(results),
            standings=rows,
            metrics=[metric(name) for name in METRICS],
            filters=_filters(rows),
            tables=tables,
            galleries=galleries,
            comparison=comparison(results),
            not_run=_not_run(results.records),
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
    environment.filters |= {"duration": _duration, "embedded": _embedded}
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
    digest = hashlib.sha256(text.encode()).digest()
    return f"'sha256-{base64.b64encode(digest).decode()}'"


def _filters(rows: list[Standing]) -> list[dict[str, Any]]:
    found = []
    for name, label in FILTERS.items():
        titled = name if name != "dataset" else "dataset_title"
        values = {getattr(row, name): getattr(row, titled) for row in rows}
        # a filter with one choice is none, but for the sets: near or far is where to begin
        chosen = next((each for each in ("near", "far") if each in values), "")
        if len(values) > 1:
            found.append(
                {
                    "name": name,
                    "label": label,
                    "values": dict(sorted(values.items())),
                    "chosen": chosen if name == "dataset" else "",
                }
            )
    return found


def _not_run(records: tuple[Record, ...]) -> list[dict[str, Any]]:
    """:return: what was not run, seeds that share a reason in one row"""
    seeds: dict[tuple[Any, ...], list[str]] = {}
    for each in (entry for record in records for entry in record.not_run):
        key = each.backbone, each.method, each.detector, each.dataset, each.reason
        seeds.setdefault(key, []).extend([] if each.seed is None else [str(each.seed)])
    names = ("backbone", "method", "detector", "dataset", "reason")
    return [
        {**dict(zip(names, key, strict=True)), "seeds": ", ".join(dict.fromkeys(own))}
        for key, own in seeds.items()
    ]


def _embedded(picture: Picture) -> str:
    return f"data:image/png;base64,{base64.b64encode(picture.png).decode()}"


def _duration(seconds: float) -> str:
    minutes, rest = divmod(round(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    if hours:
        return f"{hours} h {minutes} min"
    return f"{minutes} min {rest} s" if minutes else f"{seconds:.1f} s"
