"""Suites of methods and detectors: plans, benchmarks and their results."""

from dpn_plugin.bench.benchmark import run_benchmark
from dpn_plugin.bench.check import check_plan, describe_resizings
from dpn_plugin.bench.data import SuiteData, load_suite_data
from dpn_plugin.bench.estimate import Cost, PlanCost, estimate_plan, why_too_large
from dpn_plugin.bench.execution import LocalExecutor, PoolExecutor, RayExecutor
from dpn_plugin.bench.executor import BenchMonitor, Executor, RunMonitor
from dpn_plugin.bench.openood import BENCHMARKS as OPENOOD_BENCHMARKS
from dpn_plugin.bench.openood import SOURCE as OPENOOD_SOURCE
from dpn_plugin.bench.openood import (
    compare_with_openood,
    find_openood_benchmark,
    openood_figures,
)
from dpn_plugin.bench.paper import compare_with_paper, paper_figures
from dpn_plugin.bench.plan import Plan, make_plan
from dpn_plugin.bench.planned_run import PlannedRun
from dpn_plugin.bench.record import BENCH_FILE, BenchRecord, DataRecord, read_bench_record
from dpn_plugin.bench.request import Request
from dpn_plugin.bench.search import (
    SEARCH_FOLDER,
    SearchRecord,
    TrialRecord,
    describe_ranges,
    read_searches,
)
from dpn_plugin.bench.sharing import count_trainings
from dpn_plugin.bench.suite import Suite
from dpn_plugin.bench.suite_files import copy_suite, load_suite, read_suite_text
from dpn_plugin.bench.variants import join_options

__all__ = [
    "BENCH_FILE",
    "OPENOOD_BENCHMARKS",
    "OPENOOD_SOURCE",
    "SEARCH_FOLDER",
    "BenchMonitor",
    "BenchRecord",
    "Cost",
    "DataRecord",
    "Executor",
    "LocalExecutor",
    "Plan",
    "PlanCost",
    "PlannedRun",
    "PoolExecutor",
    "RayExecutor",
    "Request",
    "RunMonitor",
    "SearchRecord",
    "Suite",
    "SuiteData",
    "TrialRecord",
    "check_plan",
    "compare_with_openood",
    "compare_with_paper",
    "copy_suite",
    "count_trainings",
    "describe_ranges",
    "describe_resizings",
    "estimate_plan",
    "find_openood_benchmark",
    "join_options",
    "load_suite",
    "load_suite_data",
    "make_plan",
    "openood_figures",
    "paper_figures",
    "read_bench_record",
    "read_searches",
    "read_suite_text",
    "run_benchmark",
    "why_too_large",
]
