"""``bench.json``: what a benchmark says about itself."""

from collections.abc import Iterable, Mapping, Sequence
from importlib.metadata import version
from pathlib import Path
from typing import Any

from dpn_plugin.bench.data import TestData
from dpn_plugin.bench.notices import joined
from dpn_plugin.bench.plan import Plan
from dpn_plugin.files import write_text
from dpn_plugin.sealed import sealed, unsealed
from dpn_plugin.training.record import PACKAGES

__all__ = ["write_bench_record"]

FORMAT = 1
_NOTHING = dict.fromkeys(("backbone", "method", "seed", "detector", "dataset"))


def write_bench_record(
    out: Path,
    plan: Plan,
    data: TestData,
    evaluations: Sequence[dict[str, Any]],
    failed: Iterable[dict[str, Any]],
    facts: Mapping[str, Any],
) -> None:
    """
    :param out: the folder of the benchmark
    :param evaluations: contents of ``evaluation.json``
    :param failed: units that could not be run, and why
    :param facts: what the caller alone knows: ``command``, ``device``, ``started``
    """
    configs = [unit.config for unit in plan.units]
    content = {
        "format": FORMAT,
        "suite": plan.name,
        "title": plan.suite.title,
        "backbones": _distinct(config.backbone for config in configs),
        "methods": _distinct(config.method for config in configs),
        "detectors": list(plan.detectors),
        "seeds": _distinct(config.seed for config in configs),
        **data.described(plan),
        "versions": {name: version(name) for name in PACKAGES},
        **facts,
        "seconds": round(sum(map(_seconds, evaluations)), 1),
        "warnings": [*plan.suite.notes, *joined(_warnings(evaluations))],
        "not_run": [{**_NOTHING, **row} for row in _not_run(plan, evaluations, failed)],
    }
    if not _same(out / "bench.json", content):
        write_text(out / "bench.json", sealed(content, indent=1))


def _same(path: Path, content: dict[str, Any]) -> bool:
    """Whether the file says the same already, whoever started what did nothing more."""
    try:
        known = unsealed(path.read_text("utf-8"))
    except (OSError, ValueError):
        return False
    told = {key: content[key] for key in ("command", "started")}
    return known | told == content


def _seconds(evaluation: dict[str, Any]) -> float:
    """:return: what the training and the evaluation of a run took, in whichever session"""
    scoring = sum(found["seconds"] for found in evaluation["detectors"].values())
    return evaluation["training_seconds"] + evaluation["seconds"] + scoring


def _warnings(evaluations: Iterable[dict[str, Any]]) -> Iterable[tuple[str, str]]:
    for each in evaluations:
        who = f"{each['backbone']} {each['method']} seed {each['seed']}"
        for part in (each, *each["detectors"].values()):
            yield from ((who, message) for message in part["warnings"])


def _not_run(
    plan: Plan, evaluations: Iterable[dict[str, Any]], failed: Iterable[dict[str, Any]]
) -> Iterable[dict[str, Any]]:
    yield from plan.not_run
    yield from failed
    for each in evaluations:
        key = {name: each[name] for name in ("backbone", "method", "seed")}
        for name, found in each["detectors"].items():
            if found["reason"] is not None:
                yield {**key, "detector": name, "reason": found["reason"]}


def _distinct(values: Iterable[Any]) -> list[Any]:
    return list(dict.fromkeys(values))
