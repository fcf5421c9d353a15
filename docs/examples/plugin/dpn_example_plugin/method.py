"""A training method: its loss, and whether it needs outliers."""

from dpn_plugin.runs import Method

FOCAL = Method("focal", "focal", needs_outliers=True, gamma_option="gamma")
