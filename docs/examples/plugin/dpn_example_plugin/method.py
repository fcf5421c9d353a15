"""A row of the benchmark's table: which loss, and whether it needs outliers."""

from dpn_plugin.training.methods import Method

FOCAL = Method("focal", "focal", needs_outliers=True, gamma_option="gamma")
