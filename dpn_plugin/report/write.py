"""From folders of results to a page, tables and pictures."""

from collections.abc import Iterable
from pathlib import Path

from dpn_plugin.errors import UserError
from dpn_plugin.files import write_text
from dpn_plugin.report.html import page
from dpn_plugin.report.load import load_results
from dpn_plugin.report.pictures import galleries
from dpn_plugin.report.tables import result_tables
from dpn_plugin.report.writers import csv_text, latex_text, markdown_text

__all__ = ["write_report"]


def write_report(folders: str | Path | Iterable[str | Path], out: str | Path | None = None) -> Path:
    """
    Write ``report.html``, ``tables/`` (Markdown, CSV, LaTeX) and ``figures/`` (PNG, SVG).

    :param folders: one or several folders that ``dpn bench`` wrote
    :param out: where to write; by default beside the results, if there is one folder
    :return: the path of ``report.html``
    :raises UserError: if there is nothing to report on, or it cannot be written
    """
    paths = [Path(folders)] if isinstance(folders, str | Path) else [Path(f) for f in folders]
    if out is None and len(paths) > 1:
        raise UserError("out must name a folder for the joined report of several folders.")
    results = load_results(paths)
    target = paths[0] if out is None else Path(out)
    tables, drawn = result_tables(results), list(galleries(results))
    for table in tables:
        write_text(target / "tables" / f"{table.key}.csv", csv_text(table))
    write_text(target / "tables" / "tables.md", markdown_text(tables))
    write_text(target / "tables" / "tables.tex", latex_text(tables))
    for gallery in drawn:
        for picture in gallery.pictures:
            picture.save(target / "figures")
    write_text(target / "report.html", page(results, tables, drawn))
    return target / "report.html"
