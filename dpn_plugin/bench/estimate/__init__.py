"""What a plan costs before it is carried out: images, passes, hours, disk and memory."""

from dpn_plugin.bench.estimate.costs import Cost, PlanCost, Speed, Work, makespan, run_cost
from dpn_plugin.bench.estimate.plan_cost import estimate_plan, why_too_large

__all__ = [
    "Cost",
    "PlanCost",
    "Speed",
    "Work",
    "estimate_plan",
    "makespan",
    "run_cost",
    "why_too_large",
]
