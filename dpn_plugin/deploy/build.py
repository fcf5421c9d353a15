"""From a trained run to a bundle: fit detectors, calibrate them, and write all that they need."""

import tempfile
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from dpn_plugin._distributed import Processes
from dpn_plugin.data import Batches, DatasetCache, Samples
from dpn_plugin.deploy.calibration import Calibration
from dpn_plugin.deploy.combine import BundledCombination
from dpn_plugin.deploy.keep import FittedDetector, Kept, fitting_tensors
from dpn_plugin.deploy.record import DecisionRule
from dpn_plugin.deploy.scorer import BatchScorer
from dpn_plugin.deploy.write import BundleContent, DetectorContent, write_bundle
from dpn_plugin.detectors import Combination, fit, parse_combination
from dpn_plugin.errors import UserError
from dpn_plugin.outputs import FIT_SAMPLES, FitSets, OutputStore, RunOutputs
from dpn_plugin.runs import TrainedRun
from dpn_plugin.training import TrainingData, load_training_data

_BATCH = 256
#: so many images are scored again, in other batches or with a copy of the detector
_CHECKED = 8
#: how far scores in other batches may differ, as a share of the standard deviation of all scores:
#: the rounding of a network depends on the size of the batch
_ROUNDING = 0.01


def create_bundle(
    run: TrainedRun,
    detectors: Sequence[str],
    out: str | Path,
    *,
    rule: DecisionRule | None = None,
    options: Mapping[str, Mapping[str, Any]] | None = None,
    root: str | Path = "data",
    base: str | Path | None = None,
    device: str = "auto",
    replace: bool = False,
    on_detector: Callable[[str], None] = lambda name: None,
) -> Path:
    """
    Fit detectors to the training data of a run, calibrate them, write a bundle; return its folder.

    :param run: a finished run with calibration samples
    :param detectors: names, or combinations such as ``fisher(dpn-mi,knn)``
    :param out: the folder to create
    :param rule: when images are rejected; by default at alpha = 0.05
    :param options: arguments of detectors by name, e.g. ``{"dpn-dent": {"invert": True}}``
    :param root: the folder of downloaded data sets
    :param base: where relative paths of sources start; the current folder if ``None``
    :param device: where to compute
    :param replace: whether a bundle that is already in the folder is replaced
    :param on_detector: called with the name of each detector before it is fitted
    :raises UserError: if the run has no calibration samples, or a detector does not suit it
    """
    combinations = [each for each in map(parse_combination, detectors) if each is not None]
    # the members of a combination are scored anyway, and so are detectors of the bundle, too
    members = [name for each in combinations for name in each.members]
    single = list(dict.fromkeys([*(name for name in detectors if "(" not in name), *members]))
    _check_names(detectors, single, options or {})
    _check_calibration(run)
    processes = Processes.join(device)
    scorer = BatchScorer(run, processes.device)
    chosen = [
        FittedDetector(name, scorer.predictor, (options or {}).get(name, {})) for name in single
    ]
    scorer.detectors = [each.bundled for each in chosen]
    data = _load_data(run, root, base)
    with tempfile.TemporaryDirectory(prefix="dpn-bundle-") as folder:
        store, known = OutputStore(folder), run.record.data
        samples = {name: part for name, part in data.parts.items() if name in known}
        sets = FitSets.of(samples, known, FIT_SAMPLES)
        outputs = RunOutputs(run, store, sets.samples, sets.fingerprints, processes)
        _fit(chosen, outputs, on_detector)
        content = _calibrate(scorer, chosen, _calibration(data), rule or DecisionRule())
        for each in combinations:
            content.detectors[each.name] = _combined(each, content, scorer.run.num_classes)
        kinds = {each.kept.reads for each in content.detectors.values()} - {""}
        train = outputs.arrays("train") if kinds else {}
        content.fitting = fitting_tensors(kinds, train, sets.samples["train"])
    return write_bundle(Path(out), run, content, replace=replace)


def _check_names(names: Sequence[str], single: Sequence[str], options: Mapping[str, Any]) -> None:
    if not names:
        raise UserError("A bundle needs at least one detector, e.g. --detectors dpn-mi.")
    repeated = sorted({name for name in names if list(names).count(name) > 1})
    if repeated:
        raise UserError(f"The detector {repeated[0]!r} is named twice.")
    for name in options:
        if name not in single:
            raise UserError(f"Options are given for {name!r}, which is not among the detectors.")


def _check_calibration(run: TrainedRun) -> None:
    if "calibration" not in run.record.data:
        raise UserError(
            f"The run in {run.folder} has no calibration samples, without which thresholds promise "
            "nothing: all its data has trained the network, chosen the epoch or fits detectors. "
            "Train it again with dpn train --set calibration=0.1."
        )


def _load_data(run: TrainedRun, root: str | Path, base: str | Path | None) -> TrainingData:
    data = load_training_data(run.config, run.method, DatasetCache(root, base or Path()))
    found = data.compute_fingerprints()
    changed = [name for name, known in run.record.data.items() if found.get(name) != known]
    if changed:
        raise UserError(
            f"The data is not what the run in {run.folder} was trained on: {', '.join(changed)} "
            "differs. Restore the data, or train the run again."
        )
    return data


def _calibration(data: TrainingData) -> Samples:
    return data.parts["calibration"]


def _fit(
    chosen: Sequence[FittedDetector], outputs: RunOutputs, on_detector: Callable[[str], None]
) -> None:
    """Run the networks once over what detectors are fitted to, and fit all of them."""
    wanted = {each.fitted_to for each in chosen}
    held_out = outputs.held_out_names if "held_out" in wanted else []
    outputs.collect([*held_out, *(["train"] if "train" in wanted else [])])
    for each in chosen:
        on_detector(each.bundled.name)
        if each.fitted_to == "train":
            fit(each.bundled.detector, outputs.arrays("train"), outputs.batches("train"))
        elif each.fitted_to == "held_out":
            fit(each.bundled.detector, outputs.held_out(), outputs.batches(*held_out))


def _calibrate(
    scorer: BatchScorer, chosen: Sequence[FittedDetector], samples: Samples, rule: DecisionRule
) -> BundleContent:
    """Score the calibration samples with the code that an application runs."""
    first = samples.rows(torch.arange(min(_CHECKED, len(samples))))
    _find_batch_dependence(scorer, first)
    predictions, parts = [], []
    for batch, _ in Batches(samples, _BATCH, shuffle=False).epoch(0):
        outputs, found = scorer(batch)
        predictions.append(outputs["logits"].argmax(dim=1))
        parts.append(found)
    predicted = torch.cat(predictions)
    checked = scorer(first)[0], scorer.run.transform(first.to(scorer.device))
    content = BundleContent(rule, predicted)
    for each in chosen:
        name = each.bundled.name
        scores = torch.cat([part[name] for part in parts])
        content.detectors[name] = DetectorContent(
            each.options,
            each.keep(*checked),
            each.bundled.one_by_one,
            Calibration(scores, predicted, rule, scorer.run.num_classes),
        )
    return content


def _combined(
    combination: Combination, content: BundleContent, num_classes: int
) -> DetectorContent:
    calibrations = {name: each.calibration for name, each in content.detectors.items()}
    bundled = BundledCombination(combination, calibrations, num_classes)
    return DetectorContent({}, Kept("members"), False, bundled.calibration)


def _find_batch_dependence(scorer: BatchScorer, images: Tensor) -> None:
    """Mark detectors that score an image differently beside others, as dropout masks do."""
    if len(images) < 2:
        return
    together = scorer(images)[1]
    alone = [scorer(image[None])[1] for image in images]
    for each in scorer.detectors:
        single = torch.cat([found[each.name] for found in alone])
        spread = max(float(together[each.name].std()), 1e-6)
        each.one_by_one = bool((single - together[each.name]).abs().max() > _ROUNDING * spread)
