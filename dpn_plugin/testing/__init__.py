"""
The conformance kit for authors of plugins.

Every rule is a plain function; which of them a thing is held against follows from what it declares:
its base class, ``info``, ``requires_fit``, its options. Messages say how to mend.
"""

from dpn_plugin.testing.rules import CheckFailed, ConformanceWarning, Result
from dpn_plugin.testing.running import (
    check_backbone,
    check_dataset,
    check_detector,
    check_loss,
    check_plugin,
    parametrize_with_checks,
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
]
