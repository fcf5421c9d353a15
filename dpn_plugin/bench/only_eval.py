"""Evaluate a run that was trained elsewhere."""

from dataclasses import replace
from pathlib import Path

from dpn_plugin.bench.plan import Plan, Request, check_sources, make_plan
from dpn_plugin.bench.suite import Suite
from dpn_plugin.bench.unit import Unit
from dpn_plugin.errors import UserError
from dpn_plugin.training import TrainConfig, open_run

__all__ = ["plan_for_run"]


def plan_for_run(request: Request, folder: Path, out: Path) -> Plan:
    """
    :param request: the suite to evaluate on, and the detectors
    :param folder: a finished run
    :param out: the folder of the benchmark
    :return: a plan with this run alone, trained already
    :raises UserError: if the run was trained on other in-domain data than the suite's, or with
        outliers that the suite tests on
    """
    run = open_run(folder)
    config = run.config
    asked = replace(request, backbones=(config.backbone,), methods=("baseline",), seeds=1)
    plan = make_plan(asked, out / "runs")
    ours, theirs = _trained_on(config, plan.suite), plan.units[0].config
    if ours != _trained_on(theirs, plan.suite):
        raise UserError(
            f"The run in {folder} was trained on {config.in_domain.name}, or another part of it; "
            f"the suite {plan.name!r} is about {theirs.in_domain.name}."
        )
    outliers = {spec.name: spec for spec in config.outliers}
    suite = plan.suite.model_copy(update={"outliers": outliers})
    check_sources(suite)
    place = out / "runs" / config.backbone / config.method / f"seed-{config.seed}"
    return replace(plan, suite=suite, units=(Unit(config, place, trained=folder),))


def _trained_on(config: TrainConfig, suite: Suite) -> object:
    """What must agree: the classes, and where tests are kept back from the training data, all."""
    if suite.in_domain_test is None:
        return config.in_domain, config.hold_back
    return config.in_domain.model_copy(update={"limit": None})
