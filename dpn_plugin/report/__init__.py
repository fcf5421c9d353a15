"""Records and stored outputs -> tables, figures and one HTML page."""

from dpn_plugin.report.figures.simplex import simplex_figure
from dpn_plugin.report.paper.figures import PaperFigures, draw_paper_figures
from dpn_plugin.report.write import update_report, write_report

__all__ = [
    "PaperFigures",
    "draw_paper_figures",
    "simplex_figure",
    "update_report",
    "write_report",
]
