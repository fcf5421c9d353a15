"""
The conformance kit for authors of plugins.

Every rule is a plain function. Which rules apply to an object follows from what it declares: its
base class, ``info``, ``requires_fit``, its options. Messages say how to fix a problem.
"""

from dpn_plugin.testing.checks import CheckFailed, ConformanceWarning, Result
from dpn_plugin.testing.running import (
    check_backbone,
    check_dataset,
    check_detector,
    check_loss,
    check_plugin,
    parametrize_with_checks,
    run_checks,
)

__all__ = [
    "CheckFailed",
    "ConformanceWarning",
    "Result",
    "check_backbone",
    "check_dataset",
    "check_detector",
    "check_loss",
    "check_plugin",
    "parametrize_with_checks",
    "run_checks",
]
