"""Records and stored outputs -> tables, figures and one HTML page."""

from dpn_plugin.report.figures.simplex import simplex_figure
from dpn_plugin.report.write import update_report, write_report

__all__ = ["simplex_figure", "update_report", "write_report"]
