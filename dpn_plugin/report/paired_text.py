"""Paired differences as Markdown, LaTeX and CSV text, and in sentences."""

import csv
import io
from collections.abc import Callable, Iterable, Sequence

from dpn_plugin.report.names import MINUS, dataset_title
from dpn_plugin.report.paired import Pair, PairedRow
from dpn_plugin.report.results import Scope
from dpn_plugin.report.table_text import (
    escape_latex,
    escape_markdown,
    latex_row,
    markdown_row,
    no_formula,
)

_COLUMNS = ("OOD set", "Best", "AUROC", "Other", "AUROC", "Difference", "95 % interval", "Verdict")
_CSV = (
    "suite", "backbone", "dataset", "reference_method", "reference_detector", "reference_auroc",
    "method", "detector", "auroc", "difference", "low", "high", "seeds", "verdict",
)  # fmt: skip
_NOTE = (
    "AUROC in per cent, differences in points; 95 % intervals of a bootstrap over test samples and "
    "seeds, the same ones on both sides. Ahead: the interval lies above zero."
)


def points(fraction: float) -> str:
    """Return a difference of fractions in points, with its sign and a true minus."""
    value = 100 * fraction
    sign = "" if abs(value) < 0.005 else "+" if value > 0 else MINUS
    return f"{sign}{abs(value):.2f}"


def paired_sentences(rows: Sequence[PairedRow]) -> list[str]:
    """Return one sentence for each group of OOD sets: whom the best pair is ahead of."""
    groups: dict[tuple[Scope, str], list[PairedRow]] = {}
    for row in rows:
        if row.dataset in ("near", "far"):
            groups.setdefault((row.scope, row.dataset), []).append(row)
    several = len({scope for scope, _ in groups}) > 1
    return [_sentence(own, several) for own in groups.values()]


def _sentence(rows: Sequence[PairedRow], several: bool) -> str:
    first = rows[0]
    where = f" ({first.scope.suite}, {first.scope.backbone})" if several else ""
    ahead = sum(row.paired.verdict == "ahead" for row in rows)
    start = (
        f"{first.dataset.capitalize()} OOD{where}: {_named(first.reference)} is ahead of {ahead} "
        f"of the {len(rows)} others that it is compared with"
    )
    rest = [_named(row.other) for row in rows if row.paired.verdict != "ahead"]
    return f"{start}; undecided are {', '.join(rest)}." if rest else f"{start}."


def _named(pair: Pair) -> str:
    method, detector = pair
    return method if method == detector else f"{method} with {detector}"


def paired_csv(rows: Iterable[PairedRow]) -> str:
    """Return CSV with one comparison a row; AUROC and differences are fractions."""
    out = io.StringIO()
    table = csv.writer(out, lineterminator="\n")
    table.writerow(_CSV)
    for row in rows:
        names = (row.scope.suite, row.scope.backbone, row.dataset, *row.reference)
        paired = row.paired
        table.writerow(
            [
                *map(no_formula, names),
                f"{row.reference_auroc:.6f}",
                *map(no_formula, row.other),
                *(f"{x:.6f}" for x in (row.auroc, paired.difference, paired.low, paired.high)),
                paired.seeds,
                paired.verdict,
            ]
        )
    return out.getvalue()


def paired_markdown(rows: Sequence[PairedRow]) -> str:
    """Return a Markdown table for every suite and backbone."""
    lines = []
    for scope, own in _by_scope(rows).items():
        title = f"Paired differences ({scope.suite}, {scope.backbone})"
        lines += [f"## {escape_markdown(title)}", "", _NOTE, ""]
        lines += [markdown_row(list(_COLUMNS)), markdown_row(["---"] * len(_COLUMNS))]
        lines += [markdown_row(_cells(row, escape_markdown)) for row in own]
        lines.append("")
    return "\n".join(lines)


def paired_latex(rows: Sequence[PairedRow]) -> str:
    """Return a LaTeX table for every suite and backbone; it needs booktabs and longtable."""
    lines = ["% needs \\usepackage{booktabs,longtable}"]
    for scope, own in _by_scope(rows).items():
        caption = f"Paired differences ({scope.suite}, {scope.backbone}). {_NOTE}"
        lines += [
            r"\begin{longtable}{llrlrrrl}",
            rf"\caption{{{escape_latex(caption)}}} \\",
            r"\toprule",
            latex_row([escape_latex(each) for each in _COLUMNS]),
            r"\midrule",
            *(latex_row(_cells(row, _latex)) for row in own),
            r"\bottomrule",
            r"\end{longtable}",
        ]
    return "\n".join([*lines, ""])


def _latex(text: str) -> str:
    return escape_latex(text).replace(MINUS, "$-$")


def _cells(row: PairedRow, escape: Callable[[str], str]) -> list[str]:
    paired = row.paired
    cells = (
        dataset_title(row.dataset),
        ", ".join(row.reference),
        f"{100 * row.reference_auroc:.2f}",
        ", ".join(row.other),
        f"{100 * row.auroc:.2f}",
        points(paired.difference),
        f"{points(paired.low)} to {points(paired.high)}",
        paired.verdict,
    )
    return [escape(each) for each in cells]


def _by_scope(rows: Iterable[PairedRow]) -> dict[Scope, list[PairedRow]]:
    found: dict[Scope, list[PairedRow]] = {}
    for row in rows:
        found.setdefault(row.scope, []).append(row)
    return found
