"""The evaluation of one trained run with every detector, or with those that are missing."""

import time
from collections.abc import Callable, Sequence
from importlib.metadata import version
from pathlib import Path
from typing import Any

from dpn_plugin.bench.evaluation import (
    EVALUATION,
    FAILED,
    missing_detectors,
    read_evaluation,
    write_evaluation,
)
from dpn_plugin.bench.measure import (
    calibration_rows,
    classification_rows,
    detector_rows,
    gap_rows,
)
from dpn_plugin.bench.memory import Peak
from dpn_plugin.bench.notices import Notices
from dpn_plugin.bench.outputs import HELD_OUT, RunOutputs
from dpn_plugin.bench.scorers import reads_training_data, scorer
from dpn_plugin.detectors import NotApplicable
from dpn_plugin.errors import CannotWrite, UserError

__all__ = ["evaluate", "sets_to_read"]


def evaluate(
    outputs: RunOutputs,
    scored_with: Sequence[str],
    folder: Path,
    *,
    tuned: bool,
    notices: Notices,
    told: Callable[[str], None],
) -> dict[str, Any]:
    """
    :param outputs: what the run says about every set
    :param scored_with: names of detectors, or of the run's own second network
    :param folder: where ``evaluation.json`` is, or will be
    :param tuned: search the detectors' hyper-parameters on held-out data
    :param notices: where warnings arrive
    :param told: is given the name of each detector before it is evaluated
    :return: the content of ``evaluation.json``, with the asked detectors in the asked order
    """
    for name in outputs.data.sets:
        outputs.arrays(name)  # also where all figures are known: pictures are drawn from them
    path, record = folder / EVALUATION, _known(outputs, folder / EVALUATION)
    if record is None:
        record = _new(outputs, notices)
        write_evaluation(path, record)
    for name in missing_detectors(record, scored_with, tuned):
        told(name)
        record["detectors"][name] = _evaluated(outputs, name, tuned, notices)
        write_evaluation(path, record)
    return {**record, "detectors": {name: record["detectors"][name] for name in scored_with}}


def sets_to_read(
    outputs: RunOutputs, scored_with: Sequence[str], folder: Path, tuned: bool
) -> list[str]:
    """:return: the sets whose outputs :func:`evaluate` is going to read"""
    record = _known(outputs, folder / EVALUATION)
    missing = missing_detectors(record, scored_with, tuned)
    sets = list(outputs.data.sets)
    if missing or record is None:
        sets += [name for name in HELD_OUT if name in outputs.samples]
    if any(reads_training_data(outputs, name, tuned) for name in missing):
        sets.append("train")
    return sets


def _known(outputs: RunOutputs, path: Path) -> dict[str, Any] | None:
    record = read_evaluation(path)
    return record if record and record["identity"] == _identity(outputs) else None


def _identity(outputs: RunOutputs) -> dict[str, Any]:
    """All that decides the figures: weights, data and transforms, by their hashes, and our code."""
    versions = {name: version(name) for name in ("dpn-plugin", "pytorch-ood")}
    return {"outputs": outputs.keys, "versions": versions}


def _new(outputs: RunOutputs, notices: Notices) -> dict[str, Any]:
    begun, before = time.perf_counter(), len(notices.messages)
    config = outputs.run.config
    test, ood = outputs.arrays("in_domain_test"), _ood(outputs)
    rows = classification_rows(test)
    rows += calibration_rows(outputs.held_out(), test, ood)
    if not outputs.method.averages and not outputs.method.detects_apart:
        rows += gap_rows(test, ood)
    return {
        "identity": _identity(outputs),
        "backbone": config.backbone,
        "method": config.method,
        "seed": config.seed,
        "outputs": _nested(outputs.keys),
        "general": rows,
        "warnings": notices.since(before),
        "training_seconds": sum(n["seconds"] for n in outputs.run.record["networks"].values()),
        "seconds": round(time.perf_counter() - begun, 3),
        "detectors": {},
    }


def _evaluated(outputs: RunOutputs, name: str, tuned: bool, notices: Notices) -> dict[str, Any]:
    begun, before, peak = time.perf_counter(), len(notices.messages), Peak(outputs.device)
    found: dict[str, Any] = {"rows": [], "reason": None, "tuned": tuned, "hyperparameters": {}}
    try:
        score, found["hyperparameters"] = scorer(outputs, name, tuned)
        in_scores, out_scores = score("in_domain_test"), {n: score(n) for n in _ood(outputs)}
        found["rows"] = detector_rows(name, in_scores, out_scores, outputs.arrays("in_domain_test"))
    except NotApplicable as error:
        found["reason"] = f"not applicable: {error}"
    except CannotWrite:
        raise  # this is no property of the detector: it is tried again
    except UserError as error:
        found["reason"] = str(error)
    except Exception as error:  # anybody's detector: the others go on
        found["reason"] = f"{FAILED}{type(error).__name__}: {error}"
    found["warnings"] = notices.since(before)
    found["seconds"] = round(time.perf_counter() - begun, 3)
    found["peak_memory"] = peak.bytes
    return found


def _ood(outputs: RunOutputs) -> dict[str, Any]:
    return {name: outputs.arrays(name) for name in outputs.data.sets if name != "in_domain_test"}


def _nested(keys: dict[str, str]) -> dict[str, Any]:
    """:return: the keys of test sets, as the report reads them"""
    found: dict[str, Any] = {"in_domain_test": keys["in_domain_test"], "near": {}, "far": {}}
    for name, key in keys.items():
        group, dot, set_name = name.partition(".")
        if dot:
            found[group][set_name] = key
    return found
