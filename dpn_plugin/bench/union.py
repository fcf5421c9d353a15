"""The evaluations that the results of a benchmark folder are made of."""

import warnings
from collections.abc import Iterator, Sequence
from pathlib import Path

from dpn_plugin._records import DamagedRecord
from dpn_plugin.bench.data import SuiteData
from dpn_plugin.bench.plan import Plan
from dpn_plugin.bench.record import BENCH_FILE, BenchRecord, read_bench_record
from dpn_plugin.errors import UserError
from dpn_plugin.evaluation import (
    EVALUATION_FILE,
    EvaluationRecord,
    detector_code,
    read_evaluation,
    scorer_names,
)
from dpn_plugin.runs import RunRecord, method_of, read_run_record, training_code


def select_evaluations(
    plan: Plan, data: SuiteData, evaluations: Sequence[EvaluationRecord]
) -> list[EvaluationRecord]:
    """
    Return the evaluations of all runs in the folder, with all detectors that they have.

    Figures that were made with other test data or with code that has changed since are left out
    with a warning. The order is that of the earlier results, then that of the plan, so that the
    same runs always give the same files.

    :param plan: what was asked for; with ``only_asked``, nothing else is returned
    :param data: its data
    :param evaluations: of the runs that were asked for
    """
    if plan.only_asked:
        return [_asked_for(plan, each) for each in evaluations]
    known = {(each.backbone, each.method, each.seed) for each in evaluations}
    earlier = [
        each
        for each in _earlier_evaluations(plan, data)
        if (each.backbone, each.method, each.seed) not in known
    ]
    order = _Order(plan)
    found = [order.sort_detectors(_without_stale(plan, each)) for each in (*evaluations, *earlier)]
    return sorted(found, key=order.position)


class _Order:
    """The order of backbones, methods and detectors in the results of a folder."""

    def __init__(self, plan: Plan) -> None:
        before = _earlier_record(plan.out)
        configs = [run.config for run in plan.runs]
        self.backbones = _ranks(
            [*(before.backbones if before else ()), *(config.backbone for config in configs)]
        )
        self.methods = _ranks(
            [*(before.methods if before else ()), *(run.method for run in plan.runs)]
        )
        self.detectors = _ranks([*(before.detectors if before else ()), *plan.detectors])

    def position(self, evaluation: EvaluationRecord) -> tuple[int, str, int, str, int]:
        backbone, method = evaluation.backbone, evaluation.method
        last = len(self.backbones) + len(self.methods)
        return (
            self.backbones.get(backbone, last),
            backbone,
            self.methods.get(method, last),
            method,
            evaluation.seed,
        )

    def sort_detectors(self, evaluation: EvaluationRecord) -> EvaluationRecord:
        last = len(self.detectors)
        return evaluation.select(
            sorted(evaluation.detectors, key=lambda name: (self.detectors.get(name, last), name))
        )


def _ranks(names: Sequence[str]) -> dict[str, int]:
    return {name: rank for rank, name in enumerate(dict.fromkeys(names))}


def _asked_for(plan: Plan, evaluation: EvaluationRecord) -> EvaluationRecord:
    configs = {run.method: run.config for run in plan.runs}
    names = scorer_names(method_of(configs[evaluation.method]), plan.detectors)
    return evaluation.select(names)


def _earlier_record(out: Path) -> BenchRecord | None:
    try:
        return read_bench_record(out) if (out / BENCH_FILE).exists() else None
    except DamagedRecord:
        return None


def _earlier_evaluations(plan: Plan, data: SuiteData) -> Iterator[EvaluationRecord]:
    """Return the usable evaluations in the folder; warn of those that are not."""
    tests = {name: data.fingerprints[name] for name in data.sets if not name.startswith("plane.")}
    planned = {run.folder for run in plan.runs}
    for path in sorted(plan.out.glob(f"runs/*/*/*/{EVALUATION_FILE}")):
        folder = path.parent
        evaluation = None if folder in planned else read_evaluation(folder)
        if evaluation is None:
            continue
        if evaluation.data != tests:
            warnings.warn(f"{folder} was evaluated on other test data; its figures are left out.")
        elif evaluation.identity.calibration_samples != plan.suite.calibration_samples:
            warnings.warn(f"{folder} has another calibration_samples; its figures are left out.")
        elif evaluation.identity.fit_samples != plan.suite.fit_samples:
            warnings.warn(f"{folder} has another fit_samples; its figures are left out.")
        elif _has_other_code(folder, evaluation):
            warnings.warn(f"{folder} was trained with other code; its figures are left out.")
        else:
            yield evaluation


def _has_other_code(folder: Path, evaluation: EvaluationRecord) -> bool:
    try:
        record: RunRecord | None = read_run_record(folder)
        return record is not None and training_code(record.config) != evaluation.code
    except DamagedRecord:
        return True
    except UserError:  # the plugin that offered the method is not installed any more
        return False


def _without_stale(plan: Plan, evaluation: EvaluationRecord) -> EvaluationRecord:
    """Leave out detectors whose code has changed since; those of the plan are evaluated anew."""
    stale = [
        name
        for name, detector in evaluation.detectors.items()
        if detector.code and name not in plan.detectors and detector.code != detector_code(name)
    ]
    for name in stale:
        warnings.warn(
            f"The code of detector {name} has changed since {evaluation.title} was evaluated; its "
            f"figures are left out. To compute them again, add it to --detectors."
        )
    return evaluation.select(name for name in evaluation.detectors if name not in stale)
