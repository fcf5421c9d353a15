"""Records and stored outputs -> tables, figures and one HTML page."""

from dpn_plugin.report.figures.simplex import simplex_figure
from dpn_plugin.report.names import DASH
from dpn_plugin.report.paired import Pair, PairedRow, paired_rows
from dpn_plugin.report.paired_text import points
from dpn_plugin.report.paper.figures import PaperFigures, draw_paper_figures
from dpn_plugin.report.results import Results, Scope, load_results
from dpn_plugin.report.searches import SearchRow, find_searches
from dpn_plugin.report.write import update_report, write_report

__all__ = [
    "DASH",
    "Pair",
    "PairedRow",
    "PaperFigures",
    "Results",
    "Scope",
    "SearchRow",
    "draw_paper_figures",
    "find_searches",
    "load_results",
    "paired_rows",
    "points",
    "simplex_figure",
    "update_report",
    "write_report",
]
