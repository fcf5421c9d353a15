"""What a benchmark will do: the units, each a network trained with a method and a seed."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from dpn_plugin.backbones import plan_input
from dpn_plugin.bench.suite import MOST_SEEDS, Suite, load_suite
from dpn_plugin.bench.unit import Unit
from dpn_plugin.data import check_no_overlap
from dpn_plugin.errors import UserError
from dpn_plugin.plugins import registry
from dpn_plugin.training import TrainConfig

__all__ = ["Plan", "Request", "check_sources", "make_plan"]

#: share of the in-domain data kept back for tests where a suite names no test data
TEST_SHARE = 0.2


@dataclass(frozen=True)
class Request:
    """
    What a user asks for; what is empty or ``None`` is left to the suite.

    :param suite: a suite's name or the path of a suite file
    :param limit: at most so many samples of every set
    """

    suite: str
    backbones: tuple[str, ...] = ()
    methods: tuple[str, ...] = ()
    detectors: tuple[str, ...] = ()
    seeds: int | None = None
    epochs: int | None = None
    limit: int | None = None
    tune: bool = False


@dataclass(frozen=True)
class Plan:
    """
    :param name: of the suite
    :param suite: its content, with the request's limits
    :param base: where relative paths start
    :param units: in the order in which they are run
    :param detectors: names
    :param tune: whether their hyper-parameters are searched on held-out data
    :param not_run: what is left out, and why
    """

    name: str
    suite: Suite
    base: Path
    units: tuple[Unit, ...]
    detectors: tuple[str, ...]
    tune: bool = False
    not_run: list[dict[str, Any]] = field(default_factory=list)


def make_plan(request: Request, out: Path) -> Plan:
    """
    :param request: what the user asks for
    :param out: the folder of the benchmark
    :raises UserError: if a name is unknown, outliers and test sets share data, or the folder holds
        runs of another plan
    """
    name, suite, base = load_suite(request.suite)
    suite = _limited(suite, request.limit)
    if request.seeds is not None and request.seeds > MOST_SEEDS:
        raise UserError(f"seeds must be at most {MOST_SEEDS}, not {request.seeds}.")
    check_sources(suite)
    methods, not_run = _methods(request.methods or suite.methods, suite)
    backbones = dict.fromkeys(request.backbones or (suite.train.backbone,))
    units = tuple(
        _unit(suite, request, out, backbone, method, seed)
        for backbone in backbones
        for method in methods
        for seed in range(request.seeds or suite.seeds)
    )
    for backbone in backbones:
        plan_input(backbone)
    _check_folders(units)
    detectors = _detectors(request.detectors or suite.detectors)
    return Plan(name, suite, base, units, detectors, request.tune, not_run)


def _unit(suite: Suite, request: Request, out: Path, backbone: str, method: str, seed: int) -> Unit:
    channels, size, _ = suite.input_size or (None, None, None)
    config = TrainConfig(
        backbone=backbone,
        method=method,
        in_domain=suite.in_domain,
        hold_back=0.0 if suite.in_domain_test else TEST_SHARE,
        channels=channels,
        outliers=tuple(suite.outliers.values()) if _needs_outliers(method) else (),
        recipe=suite.train.made_recipe(epochs=request.epochs, image_size=size),
        stem=suite.train.stem,
        seed=seed,
    )
    return Unit(config, out / "runs" / backbone / method / f"seed-{seed}")


def _check_folders(units: Sequence[Unit]) -> None:
    for unit in units:
        if changes := unit.changes:
            more = "" if len(changes) < 5 else f" and {len(changes) - 4} more"
            raise UserError(
                f"{unit.folder} holds a run of another plan ({'; '.join(changes[:4])}{more}). Use "
                "another --out, or remove that folder."
            )


def _limited(suite: Suite, limit: int | None) -> Suite:
    if limit is None:
        return suite
    one = lambda spec: spec.model_copy(update={"limit": min(limit, spec.limit or limit)})  # noqa: E731
    many = lambda specs: {name: one(spec) for name, spec in specs.items()}  # noqa: E731
    return suite.model_copy(
        update={
            "in_domain": one(suite.in_domain),
            "in_domain_test": one(suite.in_domain_test) if suite.in_domain_test else None,
            "outliers": many(suite.outliers),
            "near": many(suite.near),
            "far": many(suite.far),
        }
    )


def check_sources(suite: Suite) -> None:
    """:raises UserError: if outliers and OOD test sets come from one data set, naming both"""
    outliers = [(name, spec, None) for name, spec in suite.outliers.items()]
    tests = [(name, spec, None) for sets in suite.groups.values() for name, spec in sets.items()]
    check_no_overlap(outliers, tests)


def _methods(names: Sequence[str], suite: Suite) -> tuple[list[str], list[dict[str, Any]]]:
    found = list(dict.fromkeys(registry.find("methods", name).name for name in names))
    if suite.outliers:
        return found, []
    left_out = [name for name in found if _needs_outliers(name)]
    reason = "the suite has no outliers to train with"
    if left_out == found:
        raise UserError(f"None of the methods {', '.join(found)} can be run: {reason}.")
    kept = [name for name in found if name not in left_out]
    return kept, [{"method": name, "reason": reason} for name in left_out]


def _needs_outliers(method: str) -> bool:
    return registry.load("methods", method).needs_outliers


def _detectors(patterns: Sequence[str]) -> tuple[str, ...]:
    names: dict[str, None] = {}
    for pattern in patterns:
        if pattern == "all":
            names |= dict.fromkeys(registry.list_detectors())
        elif any(mark in pattern for mark in "*?["):
            matching = registry.list_detectors(pattern)
            if not matching:
                raise UserError(f"No detector matches {pattern!r}.")
            names |= dict.fromkeys(matching)
        else:
            names[registry.find("detectors", pattern).name] = None
    return tuple(names)
