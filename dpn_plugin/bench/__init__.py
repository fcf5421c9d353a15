"""Suites of methods and detectors: the only layer that sees all others."""

from dpn_plugin.bench.engine import BenchMonitor, run_plan
from dpn_plugin.bench.plan import Plan, Request, Unit, make_plan
from dpn_plugin.bench.suite import Suite, load_suite

__all__ = [
    "BenchMonitor",
    "Plan",
    "Request",
    "Suite",
    "Unit",
    "load_suite",
    "make_plan",
    "run_plan",
]
