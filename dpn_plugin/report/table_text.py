"""Tables as Markdown, LaTeX and CSV text."""

import csv
import io
import re
from collections.abc import Callable, Iterable

from dpn_plugin.report.names import DASH
from dpn_plugin.report.tables import Cell, Table

_LATEX = {
    "\\": r"\textbackslash{}", "{": r"\{", "}": r"\}", "$": r"\$", "&": r"\&", "#": r"\#",
    "%": r"\%", "_": r"\_", "~": r"\textasciitilde{}", "^": r"\textasciicircum{}",
    "<": r"\textless{}", ">": r"\textgreater{}", "|": r"\textbar{}", "±": r"$\pm$",
    "‖": r"$\|$", DASH: "--",
}  # fmt: skip


def markdown_text(tables: Iterable[Table]) -> str:
    """Return all tables as Markdown, one after the other."""
    return "\n".join(_markdown(table) for table in tables)


def _markdown(table: Table) -> str:
    heads = [_md("Method"), *map(_md, table.columns)]
    lines = [f"## {_md(_full_title(table))}", "", _md(table.note), ""]
    for block in table.blocks:
        if block.title:
            lines += [f"### {_md(block.title)}", ""]
        lines += [_md_row(heads), _md_row(["---", *["---:"] * len(table.columns)])]
        for method, cells in block.rows.items():
            lines.append(_md_row([_md(method), *(_printed(c, _md, "**{}**") for c in cells)]))
        lines.append("")
    return "\n".join(lines)


def _md_row(cells: list[str]) -> str:
    return f"| {' | '.join(cells)} |"


def _md(text: str) -> str:
    escaped = re.sub(r"([\\`*_{}\[\]#|$~])", r"\\\1", text)
    return escaped.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")


def latex_text(tables: Iterable[Table]) -> str:
    r"""Return a LaTeX ``table`` per table; the document needs ``\usepackage{booktabs}``."""
    return "% needs \\usepackage{booktabs}\n" + "\n".join(_latex(table) for table in tables)


def _latex(table: Table) -> str:
    caption = f"{_tex(_full_title(table))}. {_tex(table.note)}"
    width = len(table.columns) + 1
    lines = [
        r"\begin{table}",
        rf"\caption{{{caption}}}",
        rf"\label{{tab:{table.key}}}",
        r"\centering",
        rf"\begin{{tabular}}{{l{'r' * len(table.columns)}}}",
        r"\toprule",
        _tex_row(["Method", *map(_tex, table.columns)]),
    ]
    for block in table.blocks:
        lines.append(r"\midrule")
        if block.title:
            lines.append(rf"\multicolumn{{{width}}}{{l}}{{\emph{{{_tex(block.title)}}}}} \\")
        for method, cells in block.rows.items():
            shown = (_printed(cell, _tex, r"\textbf{{{}}}") for cell in cells)
            lines.append(_tex_row([_tex(method), *shown]))
    return "\n".join([*lines, r"\bottomrule", r"\end{tabular}", r"\end{table}", ""])


def _tex_row(cells: list[str]) -> str:
    return f"{' & '.join(cells)} \\\\"


def _tex(text: str) -> str:
    return "".join(_LATEX.get(character, character) for character in text)


def csv_text(table: Table) -> str:
    """Return CSV: a row per set and method; per column the mean, the deviation and the seeds."""
    out = io.StringIO()
    rows = csv.writer(out, lineterminator="\n")
    kinds = ("mean", "std", "n")
    heads = (_no_formula(f"{c} {kind}") for c in table.columns for kind in kinds)
    rows.writerow(["set", "method", *heads])
    for block in table.blocks:
        for method, cells in block.rows.items():
            values = (value for cell in cells for value in _values(cell))
            rows.writerow([_no_formula(block.title), _no_formula(method), *values])
    return out.getvalue()


def _no_formula(name: str) -> str:
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
