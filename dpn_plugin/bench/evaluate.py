"""The evaluation of one trained run with every detector, or with those that are missing."""

import json
import resource
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from dpn_plugin.bench.measure import (
    Row,
    calibration_rows,
    classification_rows,
    detector_rows,
    gap_rows,
)
from dpn_plugin.bench.outputs import RunOutputs
from dpn_plugin.detectors import NotApplicable, fit, scores
from dpn_plugin.errors import UserError
from dpn_plugin.files import write_text
from dpn_plugin.outputs import Stored, score_chunks
from dpn_plugin.plugins import registry

__all__ = ["BINARY", "EVALUATION", "evaluate"]

EVALUATION = "evaluation.json"
#: the score of a network that tells in-domain from OOD samples, in place of a detector
BINARY = "binary"
#: what an average of predictions can be scored by, as in the paper
_OF_AVERAGES = ("dpn-maxp", "dpn-entropy", "dpn-mi")


def evaluate(
    outputs: RunOutputs,
    detectors: Sequence[str],
    *,
    tuned: bool = False,
    told: Callable[[str], None] = lambda name: None,
) -> dict[str, Any]:
    """
    :param outputs: what the run says about every set
    :param detectors: names
    :param tuned: search the detectors' hyper-parameters on held-out data
    :param told: is given the name of each detector before it is evaluated
    :return: the content of ``evaluation.json``: what was evaluated before and what was missing
    """
    path = outputs.run.folder / EVALUATION
    identity = _identity(outputs, tuned)
    record = _known(path, identity)
    if record is None:
        record = {"identity": identity, **outputs_key(outputs), "detectors": {}}
        record["general"] = _general_rows(outputs)
        record["outputs"] = _nested(outputs)
    for name in _asked(outputs, detectors):
        if name not in record["detectors"]:
            told(name)
            record["detectors"][name] = _evaluated(outputs, name, tuned)
            write_text(path, json.dumps(record))
    write_text(path, json.dumps(record))
    return record


def outputs_key(outputs: RunOutputs) -> dict[str, Any]:
    """:return: backbone, method and seed of the run"""
    config = outputs.run.config
    return {"backbone": config.backbone, "method": config.method, "seed": config.seed}


def _identity(outputs: RunOutputs, tuned: bool) -> dict[str, Any]:
    return {
        "weights": outputs.run.weights_hash,
        "sets": outputs.data.fingerprints,
        "tuned": tuned,
        "version": outputs.run.record["versions"]["dpn-plugin"],
    }


def _known(path: Path, identity: dict[str, Any]) -> dict[str, Any] | None:
    try:
        record = json.loads(path.read_text("utf-8"))
        return record if record["identity"] == identity else None
    except (OSError, ValueError, KeyError, TypeError):
        return None  # missing, damaged or of another run: evaluated anew


def _nested(outputs: RunOutputs) -> dict[str, Any]:
    found: dict[str, Any] = {"near": {}, "far": {}}
    for name, key in outputs.keys.items():
        group, dot, set_name = name.partition(".")
        if dot:
            found[group][set_name] = key
        else:
            found[name] = key
    return found


def _asked(outputs: RunOutputs, detectors: Sequence[str]) -> Sequence[str]:
    return (BINARY,) if outputs.run.method.detects_apart else detectors


def _general_rows(outputs: RunOutputs) -> list[Row]:
    test = outputs.test("in_domain_test").arrays
    ood = {name: outputs.test(name).arrays for name in _ood_names(outputs)}
    rows = classification_rows(test)
    rows += calibration_rows(outputs.held_out(), test, ood)
    if not outputs.run.method.averages and not outputs.run.method.detects_apart:
        rows += gap_rows(test, ood)
    return rows


def _ood_names(outputs: RunOutputs) -> list[str]:
    return [name for name in outputs.data.sets if name != "in_domain_test"]


def _evaluated(outputs: RunOutputs, name: str, tuned: bool) -> dict[str, Any]:
    begun = time.perf_counter()
    found: dict[str, Any] = {"rows": [], "reason": None}
    try:
        score = _scorer(outputs, name, tuned, found)
        in_scores = score("in_domain_test")
        out_scores = {set_name: score(set_name) for set_name in _ood_names(outputs)}
        test = outputs.test("in_domain_test").arrays
        found["rows"] = detector_rows(name, in_scores, out_scores, test)
    except NotApplicable as error:
        found["reason"] = f"not applicable: {error}"
    except UserError as error:
        found["reason"] = str(error)
    found["seconds"] = round(time.perf_counter() - begun, 3)
    found["peak_memory"] = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024
    return found


def _scorer(
    outputs: RunOutputs, name: str, tuned: bool, found: dict[str, Any]
) -> Callable[[str], Tensor]:
    """:return: a function from the name of a test set to its scores"""
    if name == BINARY:
        return lambda set_name: _told_apart(outputs.test(set_name))
    if outputs.run.method.averages:
        return _average_scorer(outputs, name)
    detector = registry.create_detector(name, outputs.predictor.classifier)
    detector.to(outputs.device)
    fit_data = outputs.held_out() if name == "dpn-gaussian-kl" else outputs.train().arrays
    batches = outputs.batches(outputs.material.train)
    fit(detector, fit_data, batches)
    return lambda set_name: scores(
        detector, outputs.test(set_name).arrays, outputs.batches(outputs.data.sets[set_name])
    )


def _average_scorer(outputs: RunOutputs, name: str) -> Callable[[str], Tensor]:
    if name not in _OF_AVERAGES:
        raise NotApplicable(
            f"{outputs.run.method.name} averages predictions, which have no {name} score; "
            f"those with one are {', '.join(_OF_AVERAGES)}."
        )
    if name == "dpn-mi":
        return lambda set_name: _array(outputs.test(set_name), "mutual_information")
    detector = registry.create_detector(name)
    return lambda set_name: score_chunks(
        detector.predict_logits, outputs.test(set_name).arrays["logits"]
    )


def _told_apart(stored: Stored) -> Tensor:
    logits = _array(stored, "ood_logits")
    return logits[:, 1] - logits[:, 0]


def _array(stored: Stored, name: str) -> Tensor:
    arrays: Mapping[str, Any] = stored.arrays
    return torch.from_numpy(arrays[name].copy())
