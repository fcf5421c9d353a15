"""Tables as Markdown, LaTeX and CSV text."""

import csv
import io
import re
from collections.abc import Callable, Iterable

from dpn_plugin.report.names import DASH, MINUS
from dpn_plugin.report.tables import Cell, Table

_LATEX = {
    "\\": r"\textbackslash{}", "{": r"\{", "}": r"\}", "$": r"\$", "&": r"\&", "#": r"\#",
    "%": r"\%", "_": r"\_", "~": r"\textasciitilde{}", "^": r"\textasciicircum{}",
    "<": r"\textless{}", ">": r"\textgreater{}", "|": r"\textbar{}", "±": r"$\pm$",
    "‖": r"$\|$", DASH: "--", MINUS: "$-$",
}  # fmt: skip


def markdown_text(tables: Iterable[Table]) -> str:
    """Return all tables as Markdown, one after the other."""
    return "\n".join(_markdown(table) for table in tables)


def _markdown(table: Table) -> str:
    heads = [escape_markdown("Method"), *map(escape_markdown, table.columns)]
    lines = [f"## {escape_markdown(_full_title(table))}", "", escape_markdown(table.note), ""]
    for block in table.blocks:
        if block.title:
            lines += [f"### {escape_markdown(block.title)}", ""]
        lines += [markdown_row(heads), markdown_row(["---", *["---:"] * len(table.columns)])]
        for method, cells in block.rows.items():
            lines.append(
                markdown_row(
                    [
                        escape_markdown(method),
                        *(_printed(c, escape_markdown, "**{}**") for c in cells),
                    ]
                )
            )
        lines.append("")
    return "\n".join(lines)


def markdown_row(cells: list[str]) -> str:
    """Return a row of a Markdown table."""
    return f"| {' | '.join(cells)} |"


def escape_markdown(text: str) -> str:
    """Return a text that Markdown shows as it is."""
    escaped = re.sub(r"([\\`*_{}\[\]#|$~])", r"\\\1", text)
    return escaped.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")


def latex_text(tables: Iterable[Table]) -> str:
    r"""Return a LaTeX ``table`` per table; the document needs ``\usepackage{booktabs}``."""
    return "% needs \\usepackage{booktabs}\n" + "\n".join(_latex(table) for table in tables)


def _latex(table: Table) -> str:
    caption = f"{escape_latex(_full_title(table))}. {escape_latex(table.note)}"
    width = len(table.columns) + 1
    lines = [
        r"\begin{table}",
        rf"\caption{{{caption}}}",
        rf"\label{{tab:{table.key}}}",
        r"\centering",
        rf"\begin{{tabular}}{{l{'r' * len(table.columns)}}}",
        r"\toprule",
        latex_row(["Method", *map(escape_latex, table.columns)]),
    ]
    for block in table.blocks:
        lines.append(r"\midrule")
        if block.title:
            lines.append(
                rf"\multicolumn{{{width}}}{{l}}{{\emph{{{escape_latex(block.title)}}}}} \\"
            )
        for method, cells in block.rows.items():
            shown = (_printed(cell, escape_latex, r"\textbf{{{}}}") for cell in cells)
            lines.append(latex_row([escape_latex(method), *shown]))
    return "\n".join([*lines, r"\bottomrule", r"\end{tabular}", r"\end{table}", ""])


def latex_row(cells: list[str]) -> str:
    """Return a row of a LaTeX table."""
    return f"{' & '.join(cells)} \\\\"


def escape_latex(text: str) -> str:
    """Return a text that LaTeX prints as it is."""
    return "".join(_LATEX.get(character, character) for character in text)


def csv_text(table: Table) -> str:
    """Return CSV: a row per set and method; per column the mean, the deviation and the seeds."""
    out = io.StringIO()
    rows = csv.writer(out, lineterminator="\n")
    kinds = ("mean", "std", "n")
    heads = (no_formula(f"{c} {kind}") for c in table.columns for kind in kinds)
    rows.writerow(["set", "method", *heads])
    for block in table.blocks:
        for method, cells in block.rows.items():
            values = (value for cell in cells for value in _values(cell))
            rows.writerow([no_formula(block.title), no_formula(method), *values])
    return out.getvalue()


def no_formula(name: str) -> str:
    """Return a name as a spreadsheet shows it."""
    # a spreadsheet would compute a name such as "=1+1"; an apostrophe makes it text
    return f"'{name}" if name.startswith(("=", "+", "-", "@", "\t", "\r")) else name


def _values(cell: Cell | None) -> tuple[float | str, ...]:
    if cell is None:
        return ("", "", "")
    return tuple("" if value != value else value for value in (cell.mean, cell.std, cell.n))


def _printed(cell: Cell | None, escape: Callable[[str], str], bold: str) -> str:
    if cell is None:
        return escape(DASH)
    text = escape(f"{cell.text} ± {cell.spread}" if cell.spread else cell.text)
    return bold.format(text) if cell.best else text


def _full_title(table: Table) -> str:
    return f"{table.title} ({table.scope.suite}, {table.scope.backbone})"
