"""All figures of a report, and the reasons why some could not be drawn."""

from collections.abc import Callable
from dataclasses import dataclass

from dpn_plugin.errors import UserError
from dpn_plugin.report.figures.classification import reliability_figure, training_figure
from dpn_plugin.report.figures.decisions import decision_figure, selective_figure
from dpn_plugin.report.figures.detection import histogram_figure, roc_figure
from dpn_plugin.report.figures.gap import gap_figure
from dpn_plugin.report.figures.maps import map_figure
from dpn_plugin.report.figures.shift import shift_figure
from dpn_plugin.report.figures.simplex import typical_figure
from dpn_plugin.report.figures.style import ReportFigure
from dpn_plugin.report.names import slug
from dpn_plugin.report.results import Results, Scope
from dpn_plugin.report.stored_runs import StoredRun, find_runs

__all__ = ["FigureSet", "draw_figures"]

_FIGURES: dict[str, Callable[[str, list[StoredRun]], ReportFigure | None]] = {
    "gap": gap_figure,
    "maps": map_figure,
    "typical": typical_figure,
    "roc": roc_figure,
    "histograms": histogram_figure,
    "shift": shift_figure,
    "decisions": decision_figure,
    "selective": selective_figure,
    "reliability": reliability_figure,
    "training": training_figure,
}


@dataclass(frozen=True)
class FigureSet:
    """
    The figures of one backbone on one suite.

    :param scope: the suite and the backbone
    :param figures: those that could be drawn
    :param problems: a sentence for each that could not
    """

    scope: Scope
    figures: tuple[ReportFigure, ...] = ()
    problems: tuple[str, ...] = ()


def draw_figures(results: Results) -> list[FigureSet]:
    """Draw the figures of every backbone on every suite."""
    return [_draw(results, scope) for scope in results.scopes()]


def _draw(results: Results, scope: Scope) -> FigureSet:
    # a figure that cannot be drawn must not prevent the tables
    methods = list(dict.fromkeys(results.rows(scope)["method"]))
    try:
        runs = find_runs(results.suite_folders(scope.suite), scope, methods)
    except UserError as error:
        return FigureSet(scope, problems=(str(error),))
    if not runs:
        return FigureSet(scope, problems=("There are no stored outputs to draw.",))
    figures, problems = [], []
    for name, draw in _FIGURES.items():
        try:
            figure = draw(slug(scope.suite, scope.backbone, name), runs)
        except ValueError as error:  # outputs of a stranger may have values that no measure accepts
            problems.append(str(error))
        else:
            figures += [figure] if figure else []
    return FigureSet(scope, tuple(figures), tuple(dict.fromkeys(problems)))
