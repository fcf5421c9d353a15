"""Results as tables, pictures and one HTML page."""

from dpn_plugin.report.write import write_report

__all__ = ["write_report"]
