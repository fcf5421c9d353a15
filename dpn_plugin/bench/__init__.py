"""Suites of methods and detectors: the only layer that sees all others."""

from dpn_plugin.bench.engine import run_plan
from dpn_plugin.bench.executor import BenchMonitor, Executor, LocalExecutor
from dpn_plugin.bench.only_eval import plan_for_run
from dpn_plugin.bench.plan import Plan, Request, make_plan
from dpn_plugin.bench.suite import Suite, load_suite
from dpn_plugin.bench.unit import Unit
from dpn_plugin.bench.workshop import UnitMonitor

__all__ = [
    "BenchMonitor",
    "Executor",
    "LocalExecutor",
    "Plan",
    "Request",
    "Suite",
    "Unit",
    "UnitMonitor",
    "load_suite",
    "make_plan",
    "plan_for_run",
    "run_plan",
]
