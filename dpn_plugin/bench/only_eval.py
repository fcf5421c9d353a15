"""Evaluate a run that was trained elsewhere."""

from dataclasses import replace
from pathlib import Path

from dpn_plugin.bench.plan import Plan, Request, Unit, make_plan
from dpn_plugin.errors import UserError
from dpn_plugin.training import open_run

__all__ = ["plan_for_run"]


def plan_for_run(request: Request, folder: Path) -> Plan:
    """
    :param request: the suite to evaluate on, and the detectors
    :param folder: a finished run
    :return: a plan with this run alone, trained already
    :raises UserError: if the run was trained on other in-domain data than the suite's
    """
    run = open_run(folder)
    asked = replace(request, backbones=(run.config.backbone,), methods=(run.config.method,))
    plan = make_plan(replace(asked, seeds=1), folder.parent)
    if run.config.in_domain != plan.suite.in_domain:
        raise UserError(
            f"The run in {folder} was trained on {run.config.in_domain.name}, the suite "
            f"{plan.name!r} is about {plan.suite.in_domain.name}."
        )
    return replace(plan, units=(Unit(run.config, folder),))
