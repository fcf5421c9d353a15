"""Write the report of benchmarks, and keep the report beside a benchmark up to date."""

from collections.abc import Iterable
from contextlib import suppress
from pathlib import Path

from dpn_plugin._files import check_folder, file_hash, locked, write_text
from dpn_plugin.bench import BENCH_FILE, SEARCH_FOLDER
from dpn_plugin.errors import UserError, unknown_name
from dpn_plugin.evaluation import SAMPLES_FILE
from dpn_plugin.report import openood as openood_text
from dpn_plugin.report.figures import draw_figures
from dpn_plugin.report.html import html_page
from dpn_plugin.report.openood import AgainstOpenOOD, OpenOODTable, against_openood
from dpn_plugin.report.paired import PairedRow, paired_rows
from dpn_plugin.report.paired_text import paired_csv, paired_latex, paired_markdown
from dpn_plugin.report.paper import text as paper_text
from dpn_plugin.report.paper.tables import PaperTable, paper_tables
from dpn_plugin.report.results import Results, load_results
from dpn_plugin.report.samples import find_samples
from dpn_plugin.report.searches import SearchRow, find_searches, search_csv, search_markdown
from dpn_plugin.report.shift_tables import shift_tables
from dpn_plugin.report.table_text import csv_text, latex_text, markdown_text
from dpn_plugin.report.tables import result_tables

_PAGE = "report.html"
_LOCK = ".report.lock"
#: the hashes of the report and of its sources, in the format of sha256sum
_HASHES = "report.sha256"
_TABLES = ("results.csv", BENCH_FILE)
#: the published leaderboards that figures can be set beside
_AGAINST = ("openood",)


def write_report(
    folders: str | Path | Iterable[str | Path],
    out: str | Path | None = None,
    against: str | None = None,
) -> Path:
    """
    Write ``report.html``, ``tables/`` (Markdown, CSV, LaTeX), ``figures/`` (PNG, SVG) and the
    hashes of all of them; ``tables/paper/`` has the paper's tables, if its suites were run.

    :param folders: one or several folders that ``dpn bench`` wrote
    :param out: where to write; by default beside the results, if there is one folder
    :param against: ``"openood"`` sets OpenOOD's published leaderboard beside the figures, on the
        page and in ``tables/openood/``
    :return: the path of ``report.html``
    :raises UserError: if there is nothing to report on or to compare with, ``out`` holds files of
        others, or it cannot be written
    """
    paths = [Path(folders)] if isinstance(folders, str | Path) else [Path(f) for f in folders]
    if out is None and len(paths) > 1:
        raise UserError("out must name a folder for the joined report of several folders.")
    target = paths[0] if out is None else Path(out)
    if target not in paths and not (target / _HASHES).exists():
        check_folder(target, "report")
    # first, because they may change while it is written
    sources = _hashes(target, _sources(target))
    results = load_results(paths)
    compared = None if against is None else _compare(results, against)
    tables = [*result_tables(results), *shift_tables(results)]
    figure_sets = draw_figures(results)
    for table in tables:
        write_text(target / "tables" / f"{table.key}.csv", csv_text(table))
    write_text(target / "tables" / "tables.md", markdown_text(tables))
    write_text(target / "tables" / "tables.tex", latex_text(tables))
    for paper_table in paper_tables(results):
        _write_paper_table(target / "tables" / "paper", paper_table)
    _write_openood_tables(target / "tables" / "openood", compared.tables if compared else ())
    for figure_set in figure_sets:
        for figure in figure_set.figures:
            figure.save(target / "figures")
    paired = paired_rows(results)
    _write_paired(target / "tables", paired)
    searches = find_searches(results)
    _write_searches(target / "tables", searches)
    samples = find_samples(results)
    page = html_page(results, tables, figure_sets, samples, paired, searches, compared)
    write_text(target / _PAGE, page)
    hashes = {**_hashes(target, [*_parts(target), _PAGE]), **sources}
    write_text(target / _HASHES, "".join(f"{each}  {name}\n" for name, each in hashes.items()))
    return target / _PAGE


def _compare(results: Results, against: str) -> AgainstOpenOOD:
    if against not in _AGAINST:
        raise unknown_name("leaderboard", against, _AGAINST)
    return against_openood(results)


def _write_openood_tables(folder: Path, tables: Iterable[OpenOODTable]) -> None:
    """Write the tables, and remove those of an earlier report."""
    for path in folder.glob("*"):
        path.unlink()
    for table in tables:
        write_text(folder / f"{table.key}.csv", openood_text.csv_text(table))
        write_text(folder / f"{table.key}.md", openood_text.markdown_text(table))
        write_text(folder / f"{table.key}.tex", openood_text.latex_text(table))


def _write_paired(folder: Path, rows: list[PairedRow]) -> None:
    write_text(folder / "paired.csv", paired_csv(rows))
    write_text(folder / "paired.md", paired_markdown(rows))
    write_text(folder / "paired.tex", paired_latex(rows))


def _write_searches(folder: Path, rows: list[SearchRow]) -> None:
    if rows:
        write_text(folder / "search.csv", search_csv(rows))
        write_text(folder / "search.md", search_markdown(rows))


def _write_paper_table(folder: Path, table: PaperTable) -> None:
    write_text(folder / f"{table.key}.md", paper_text.markdown_text(table))
    write_text(folder / f"{table.key}.tex", paper_text.latex_text(table))
    write_text(folder / f"{table.key}.csv", paper_text.csv_text(table))


def update_report(folder: str | Path) -> Path:
    """
    Write the report of a benchmark, unless it is there, undamaged, and made from these results.

    This is decided by hashes, because modification times are wrong where clocks are.

    :param folder: what ``dpn bench`` wrote
    :return: the path of ``report.html``
    :raises UserError: if it cannot be written
    """
    folder = Path(folder)
    # of several processes, the one that finished its results last also checks the report last
    with locked(folder / _LOCK):
        if not _is_current(folder):
            write_report(folder)
    return folder / _PAGE


def _is_current(folder: Path) -> bool:
    try:
        lines = (folder / _HASHES).read_text("utf-8").splitlines()
        recorded = {name: digest for digest, name in (line.split("  ", 1) for line in lines)}
    except (OSError, ValueError):
        return False
    # the sources are at the end: a file that was cut off lacks them
    sources = _hashes(folder, _sources(folder))
    return sources.keys() <= recorded.keys() and recorded == _hashes(folder, recorded)


def _sources(folder: Path) -> list[str]:
    kinds = (f"runs/*/*/*/{SAMPLES_FILE}", f"{SEARCH_FOLDER}/*/*.json")
    found = (path for kind in kinds for path in sorted(folder.glob(kind)))
    return [*_TABLES, *(str(path.relative_to(folder)) for path in found)]


def _parts(folder: Path) -> list[str]:
    paths = (path for kind in ("tables", "figures") for path in (folder / kind).rglob("*"))
    return sorted(path.relative_to(folder).as_posix() for path in paths if path.is_file())


def _hashes(folder: Path, names: Iterable[str]) -> dict[str, str]:
    """Return the hash of each of the files that exist."""
    found = {}
    for name in names:
        with suppress(OSError):
            found[name] = file_hash(folder / name)
    return found
