"""The paper's tables as LaTeX, Markdown and CSV text."""

from itertools import groupby

from dpn_plugin.report.names import DASH
from dpn_plugin.report.paper.grid import Line
from dpn_plugin.report.paper.names import latex_name
from dpn_plugin.report.paper.tables import FilledGrid, PaperCell, PaperTable, figure_rows
from dpn_plugin.report.table_text import escape_markdown, latex_row, markdown_row

#: a grid with more columns is scaled to the width of the text
_NATURAL = 6


def csv_text(table: PaperTable) -> str:
    """Return CSV: a row per figure, with its place, ours and the paper's."""
    # fifteen digits keep the value, and drop what the factor of 100 adds to it
    return figure_rows(table).to_csv(index=False, lineterminator="\n", float_format="%.15g")


def markdown_text(table: PaperTable) -> str:
    """Return Markdown: our figures, and in brackets the paper's."""
    layout = table.layout
    note = escape_markdown(f"{table.backbone}. {table.note}")
    lines = [
        f"## Table {layout.number}: {escape_markdown(layout.caption)}",
        "",
        f"{note} The paper's figures are in brackets.",
    ]
    for grid in table.grids:
        title = grid.layout.title
        lines += ["", *([f"### {title}", ""] if title else []), *_markdown_grid(grid)]
    return "\n".join([*lines, ""])


def _markdown_grid(grid: FilledGrid) -> list[str]:
    titles, columns = grid.layout.row_titles, grid.layout.columns
    heads = [escape_markdown(" ".join(filter(None, column.heads))) for column in columns]
    lines = [
        markdown_row([*titles, *heads]),
        markdown_row([*["---"] * len(titles), *["---:"] * len(heads)]),
    ]
    for line, cells in zip(grid.layout.rows, grid.cells, strict=True):
        shown = (_markdown_cell(cell) for cell in cells)
        lines.append(markdown_row([*map(escape_markdown, line.heads), *shown]))
    return lines


def _markdown_cell(cell: PaperCell | None) -> str:
    if cell is None:
        return DASH
    if cell.ours is None:
        return f"{DASH} ({cell.paper.text})"
    ours = f"{cell.ours.text} ± {cell.ours.spread}" if cell.ours.spread else cell.ours.text
    return f"{f'**{ours}**' if cell.ours.best else ours} ({cell.paper.text})"


def latex_text(table: PaperTable) -> str:
    r"""Return a LaTeX ``table``; the document needs the packages booktabs and graphicx."""
    caption = f"{table.layout.caption}, {table.backbone}. {table.note}"
    lines = [
        r"% needs \usepackage{booktabs,graphicx}",
        r"\begin{table}",
        r"\centering",
        rf"\caption{{{latex_name(caption)}}}",
        rf"\label{{tab:{table.key}}}",
    ]
    for grid in table.grids:
        if grid.layout.title:
            lines.append(rf"\par\smallskip {latex_name(grid.layout.title)}\par\smallskip")
        lines += _latex_grid(grid)
    return "\n".join([*lines, r"\end{table}", ""])


def _latex_grid(grid: FilledGrid) -> list[str]:
    columns = grid.layout.columns
    # the outer heads of rows are lines of their own
    lines = [
        rf"\begin{{tabular}}{{l{'c' * len(columns)}}}",
        r"\toprule",
        *_latex_heads(columns, grid.layout.row_titles[-1]),
        *_latex_rows(grid),
        r"\bottomrule",
        r"\end{tabular}",
    ]
    if len(columns) <= _NATURAL:
        return lines
    return [r"\resizebox{\linewidth}{!}{%", *lines[:-1], rf"{lines[-1]}}}"]


def _latex_heads(columns: tuple[Line, ...], row_title: str) -> list[str]:
    depth = len(columns[0].heads)
    lines = []
    for level in range(depth - 1):
        spans = [
            (latex_name(heads[-1]), len(list(own)))
            for heads, own in groupby(columns, key=lambda column: column.heads[: level + 1])
        ]
        lines.append(
            latex_row(["", *(rf"\multicolumn{{{n}}}{{c}}{{{name}}}" for name, n in spans)])
        )
        lines.append(_rules(spans))
    own = [latex_name(column.heads[-1]) for column in columns]
    return [*lines, latex_row([row_title, *own]), r"\midrule"]


def _rules(spans: list[tuple[str, int]]) -> str:
    """Return the rules under the heads that join several columns."""
    rules, start = [], 2
    for name, width in spans:
        if name:
            rules.append(rf"\cmidrule(lr){{{start}-{start + width - 1}}}")
        start += width
    return " ".join(rules)


def _latex_rows(grid: FilledGrid) -> list[str]:
    lines: list[str] = []
    outer: tuple[str, ...] = ()
    width = len(grid.layout.columns) + 1
    for line, cells in zip(grid.layout.rows, grid.cells, strict=True):
        if line.heads[:-1] != outer:
            outer = line.heads[:-1]
            lines += [r"\midrule"] if lines else []
            title = latex_name(" ".join(outer))
            lines.append(rf"\multicolumn{{{width}}}{{l}}{{\emph{{{title}}}}} \\")
        lines.append(latex_row([latex_name(line.heads[-1]), *map(_latex_cell, cells)]))
    return lines


def _latex_cell(cell: PaperCell | None) -> str:
    if cell is None or cell.ours is None:
        return "--"
    spread = rf"{{\tiny$\pm${cell.ours.spread}}}" if cell.ours.spread else ""
    text = f"{cell.ours.text}{spread}".replace(DASH, "--")
    return rf"\textbf{{{text}}}" if cell.ours.best else text
