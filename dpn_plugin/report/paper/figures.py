"""All figures of the paper: those that need no network, and those of a benchmark."""

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from dpn_plugin.errors import UserError
from dpn_plugin.report.figures.style import ReportFigure
from dpn_plugin.report.paper import simplexes, trained
from dpn_plugin.report.paper.names import METHODS
from dpn_plugin.report.results import load_results
from dpn_plugin.report.stored_runs import StoredRun, find_runs

#: by number, as the paper numbers them
_FREE: dict[int, Callable[[], ReportFigure]] = {
    1: simplexes.desired_figure,
    2: simplexes.same_precision_figure,
    3: simplexes.regularizer_figure,
    4: simplexes.precisions_figure,
}
_OF_RUNS: dict[int, Callable[[dict[str, StoredRun]], ReportFigure]] = {
    5: trained.maps_figure,
    6: trained.gap_figure,
    7: trained.all_maps_figure,
}


@dataclass(frozen=True)
class PaperFigures:
    """
    The figures of the paper.

    :param figures: those that were drawn, by number
    :param missing: a sentence for each that was not, by number
    """

    figures: dict[int, ReportFigure]
    missing: dict[int, str]


def draw_paper_figures(bench: str | Path | None = None) -> PaperFigures:
    """
    Draw the figures of the paper.

    :param bench: a folder that ``dpn bench synthetic`` wrote, for the figures of trained networks
    :raises UserError: if the folder holds no benchmark
    """
    figures = {number: draw() for number, draw in _FREE.items()}
    missing: dict[int, str] = {}
    runs = {} if bench is None else _lowest_seeds(Path(bench))
    for number, draw in _OF_RUNS.items():
        if bench is None:
            missing[number] = "It shows trained networks: name a folder of dpn bench synthetic."
            continue
        try:
            figures[number] = draw(runs)
        except UserError as error:
            missing[number] = str(error)
    return PaperFigures(figures, missing)


def _lowest_seeds(bench: Path) -> dict[str, StoredRun]:
    """Return the run with the lowest seed of every method, of the first backbone."""
    results = load_results([bench])
    scope = next(results.scopes())
    return {run.record.method: run for run in find_runs([bench], scope, [*METHODS])}
