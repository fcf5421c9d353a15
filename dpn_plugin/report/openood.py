"""OpenOOD's published rows beside ours: rows of the page, and tables as CSV, Markdown and LaTeX."""

import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import pandas as pd

from dpn_plugin.bench import (
    OPENOOD_BENCHMARKS,
    OPENOOD_SOURCE,
    compare_with_openood,
    find_openood_benchmark,
)
from dpn_plugin.errors import UserError, choices
from dpn_plugin.report.names import DASH, MINUS, slug
from dpn_plugin.report.results import Results
from dpn_plugin.report.table_text import (
    escape_latex,
    escape_markdown,
    latex_row,
    markdown_row,
    no_formula,
)

_SPECTRA = {"ood": "OOD", "full_spectrum": "full spectrum"}
HEADS = (
    "Setting", "Backbone", "Method", "Detector", "OpenOOD's row",
    "Near", "OpenOOD", "Difference", "Far", "OpenOOD", "Difference",
)  # fmt: skip
#: the columns of text before the numbers
TEXTS = 5


@dataclass(frozen=True)
class OpenOODTable:
    """
    Our figures on one benchmark of OpenOOD beside those that it publishes.

    :param key: name of its files
    :param title: what it shows
    :param note: where the figures come from, and how to read them
    :param rows: one text for each of :data:`HEADS`
    :param figures: the same as numbers
    """

    key: str
    title: str
    note: str
    rows: tuple[tuple[str, ...], ...]
    figures: pd.DataFrame


@dataclass(frozen=True)
class AgainstOpenOOD:
    """
    The comparison of a report.

    :param tables: one for each suite that is a benchmark of OpenOOD
    :param left_out: a sentence for each suite that is not
    """

    tables: tuple[OpenOODTable, ...]
    left_out: tuple[str, ...]


def against_openood(results: Results) -> AgainstOpenOOD:
    """
    Return the comparison of all suites that are benchmarks of OpenOOD.

    :raises UserError: if there is none
    """
    tables, left_out = [], []
    for suite in results.suites:
        records = [record for record in results.records if record.suite == suite]
        names = {find_openood_benchmark(record) for record in records}
        name = names.pop() if len(names) == 1 else None
        if name is None:
            left_out.append(_why_not(suite))
        else:
            tables.append(_table(results, suite, name))
    if not tables:
        raise UserError(" ".join(left_out))
    return AgainstOpenOOD(tuple(tables), tuple(left_out))


def _why_not(suite: str) -> str:
    known = choices([f"openood-{name}" for name in OPENOOD_BENCHMARKS])
    return (
        f"{suite!r} cannot be set beside OpenOOD's leaderboard: its in-domain test data and OOD "
        f"sets are not those of a benchmark there, which the suites {known} have."
    )


def _table(results: Results, suite: str, name: str) -> OpenOODTable:
    figures = compare_with_openood(results.summary[results.summary["suite"].eq(suite)], name)
    title = f"{OPENOOD_BENCHMARKS[name].title} beside OpenOOD's leaderboard ({suite})"
    note = (
        f"AUROC in per cent, means over seeds; differences are ours minus OpenOOD's. Source: "
        f"{OPENOOD_SOURCE}. Its networks are trained in another way than ours, unless the weights "
        f"are the same; a dash in one of the two halves: there is no counterpart."
    )
    limited = [r for r in results.records if r.suite == suite and r.limit is not None]
    if limited:
        note += f" Ours are of {limited[0].limit:,} samples of every set at most (--limit)."
    return OpenOODTable(slug(suite, "openood"), title, note, tuple(_rows(figures)), figures)


def _rows(figures: pd.DataFrame) -> Iterator[tuple[str, ...]]:
    for row in figures.to_dict("records"):
        ours = [_text(row[name]) for name in ("backbone", "method", "detector")]
        numbers = [
            cell
            for group in ("near", "far")
            for cell in (
                _number(row[group], row[f"{group}_std"]),
                _number(row[f"openood_{group}"], row[f"openood_{group}_std"]),
                _difference(row[f"difference_{group}"]),
            )
        ]
        yield (_SPECTRA[row["spectrum"]], *ours, _their_name(row), *numbers)


def _their_name(row: Mapping[Any, Any]) -> str:
    if not isinstance(row["training"], str):
        return DASH
    parts = dict.fromkeys(str(row[name]) for name in ("training", "postprocessor"))
    outliers = ", outliers" if row["outliers"] == "Yes" else ""
    return f"{' + '.join(parts)} ({row['architecture']}{outliers})"


def _text(value: object) -> str:
    return value if isinstance(value, str) else DASH


def _number(mean: float, std: float) -> str:
    if math.isnan(mean):
        return DASH
    return f"{mean:.2f}" if math.isnan(std) else f"{mean:.2f} ± {std:.2f}"


def _difference(value: float) -> str:
    if math.isnan(value):
        return DASH
    return f"{MINUS if round(value, 2) < 0 else '+'}{abs(value):.2f}"


def csv_text(table: OpenOODTable) -> str:
    """Return CSV: the numbers, with what stands beside what."""
    figures = table.figures.assign(source=OPENOOD_SOURCE)
    for name in ("backbone", "method", "detector"):
        figures[name] = figures[name].map(no_formula, na_action="ignore")
    return figures.to_csv(index=False, lineterminator="\n", float_format="%.6g")


def markdown_text(table: OpenOODTable) -> str:
    """Return the table as Markdown."""
    lines = [f"## {escape_markdown(table.title)}", "", escape_markdown(table.note), ""]
    lines += [
        markdown_row(list(HEADS)),
        markdown_row(["---"] * TEXTS + ["---:"] * (len(HEADS) - TEXTS)),
        *(markdown_row([*map(escape_markdown, row)]) for row in table.rows),
    ]
    return "\n".join([*lines, ""])


def latex_text(table: OpenOODTable) -> str:
    r"""Return a LaTeX ``longtable``, because it has more rows than a page."""
    columns = "l" * TEXTS + "r" * (len(HEADS) - TEXTS)
    caption = f"{escape_latex(table.title)}. {escape_latex(table.note)}"
    return "\n".join(
        [
            r"% needs \usepackage{booktabs,longtable}",
            rf"\footnotesize\begin{{longtable}}{{{columns}}}",
            rf"\caption{{{caption}}}\label{{tab:{table.key}}}\\",
            r"\toprule",
            latex_row([*map(escape_latex, HEADS)]),
            r"\midrule\endhead",
            *(latex_row([*map(escape_latex, row)]) for row in table.rows),
            r"\bottomrule",
            r"\end{longtable}\normalsize",
            "",
        ]
    )
