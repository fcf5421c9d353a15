"""Results as tables, pictures and one HTML page."""

from dpn_plugin.report.current import current_report
from dpn_plugin.report.write import write_report

__all__ = ["current_report", "write_report"]
