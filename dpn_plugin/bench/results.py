"""The files that a benchmark writes: results, leaderboard, comparison and ``bench.json``."""

from collections.abc import Iterable, Sequence
from importlib.metadata import version
from pathlib import Path
from typing import TypeVar

import pandas as pd

from dpn_plugin._files import write_text
from dpn_plugin.bench.data import SuiteData
from dpn_plugin.bench.paper import against_paper
from dpn_plugin.bench.plan import Plan
from dpn_plugin.bench.planned_run import PlannedRun
from dpn_plugin.bench.record import BenchRecord, DataRecord, NotRun, write_bench_record
from dpn_plugin.bench.union import select_evaluations
from dpn_plugin.data import Samples, SourceSpec
from dpn_plugin.errors import UserError
from dpn_plugin.evaluation import PLANE_SETS, EvaluationRecord, join_messages
from dpn_plugin.metrics import RESULT_COLUMNS, over_seeds
from dpn_plugin.runs import PACKAGES

_T = TypeVar("_T")


def write_results(
    plan: Plan,
    data: SuiteData,
    results: Sequence[tuple[PlannedRun, EvaluationRecord | str]],
    command: str,
    device: str,
    started: str,
    notes: Sequence[str] = (),
) -> None:
    """
    Write ``results.csv``, ``leaderboard.csv``, ``bench.json`` and, for the paper's tasks,
    ``comparison.csv``.

    They hold the figures of all runs in the folder, not only of those that were asked for now.

    :param plan: what was asked for
    :param data: its data
    :param results: every run with its evaluation, or the reason why there is none
    :param command: the command that started the benchmark
    :param device: where it ran
    :param started: when
    :param notes: what a reader must know about the data
    :raises UserError: if there are no figures
    """
    evaluations = [each for _, each in results if isinstance(each, EvaluationRecord)]
    failed = [(run, each) for run, each in results if isinstance(each, str)]
    evaluations = select_evaluations(plan, data, evaluations)
    if not evaluations:
        raise UserError(f"Nothing could be run. {failed[0][1]}")
    table = results_table(plan.name, evaluations)
    _write_table(plan.out / "results.csv", table)
    _write_table(plan.out / "leaderboard.csv", leaderboard(table))
    if plan.suite.paper_task is not None:
        _write_table(plan.out / "comparison.csv", against_paper(table, plan.suite.paper_task))
    not_run = [*plan.not_run, *(_not_run(run, reason) for run, reason in failed)]
    skipped = [NotRun(dataset=name, reason=reason) for name, reason in data.skipped.items()]
    detectors = _distinct(name for each in evaluations for name in each.detectors)
    record = BenchRecord(
        suite=plan.name,
        title=plan.suite.title,
        backbones=_distinct(each.backbone for each in evaluations),
        methods=_distinct(each.method for each in evaluations),
        detectors=detectors,
        seeds=sorted({each.seed for each in evaluations}),
        **_describe_data(plan, data),
        paper_task=plan.suite.paper_task,
        epochs=max(run.config.recipe.epochs for run in plan.runs),
        suite_epochs=plan.suite.train.create_recipe().epochs,
        limit=plan.limit,
        calibration_samples=plan.suite.calibration_samples,
        versions={name: version(name) for name in PACKAGES},
        code=_code(evaluations),
        command=command,
        device=device,
        started=started,
        seconds=round(sum(map(_seconds, evaluations)), 1),
        warnings=[*plan.suite.notes, *notes, *join_messages(_warnings(evaluations))],
        not_run=[*skipped, *not_run, *_detectors_not_run(evaluations)],
    )
    write_bench_record(plan.out, record)


def results_table(suite: str, evaluations: Iterable[EvaluationRecord]) -> pd.DataFrame:
    """
    Return one figure a row, in the columns of ``results.csv``.

    :param suite: its name
    :param evaluations: of all runs
    """
    rows = [
        {
            "suite": suite,
            "backbone": each.backbone,
            "method": each.method,
            "seed": each.seed,
            **row.model_dump(),
        }
        for each in evaluations
        for row in each.all_rows()
    ]
    return pd.DataFrame(rows, columns=list(RESULT_COLUMNS))


def leaderboard(results: pd.DataFrame) -> pd.DataFrame:
    """
    Return one row per backbone, method and detector with OpenOOD's columns, in percent.

    These are near and far AUROC, FPR95 and AUPR as means over seeds, and the accuracy. The best far
    AUROC comes first.

    :param results: figures with the columns of ``results.csv``
    """
    means = over_seeds(results)
    keys = ["backbone", "method", "detector"]
    groups = means[(means["task"] == "ood") & means["dataset"].isin(["near", "far"])]
    columns = {
        ("near", "auroc"): "Near-OOD AUROC",
        ("far", "auroc"): "Far-OOD AUROC",
        ("near", "fpr95"): "Near-OOD FPR@95",
        ("far", "fpr95"): "Far-OOD FPR@95",
        ("near", "aupr_in"): "Near-OOD AUPR_IN",
        ("far", "aupr_in"): "Far-OOD AUPR_IN",
        ("near", "aupr_out"): "Near-OOD AUPR_OUT",
        ("far", "aupr_out"): "Far-OOD AUPR_OUT",
    }
    wide = groups.pivot_table(index=keys, columns=["dataset", "metric"], values="mean")
    table = pd.DataFrame(index=wide.index)
    for column, title in columns.items():
        table[title] = 100 * wide[column] if column in wide else float("nan")
    table = table.reset_index()
    is_accuracy = (means["task"] == "classification") & (means["metric"] == "accuracy")
    accuracy = means[is_accuracy][["backbone", "method", "mean", "n"]]
    accuracy = accuracy.rename(columns={"mean": "ID ACC", "n": "Seeds"})
    accuracy["ID ACC"] *= 100
    table = table.merge(accuracy, on=["backbone", "method"], how="left")
    order = [c for c in ("Far-OOD AUROC", "Near-OOD AUROC") if table[c].notna().any()]
    return table.sort_values(order, ascending=False, kind="stable") if order else table


def _write_table(path: Path, table: pd.DataFrame) -> None:
    """Write a table as CSV, unless the file has this content already."""
    text = table.to_csv(index=False, lineterminator="\n")
    if not path.exists() or path.read_bytes() != text.encode():
        write_text(path, text)


def _describe_data(plan: Plan, data: SuiteData) -> dict[str, object]:
    suite, classes = plan.suite, list(data.in_domain.classes)
    test = suite.in_domain_test or suite.in_domain
    outliers = data.outliers.items()
    return {
        "in_domain": _data_record(suite.in_domain, data.in_domain, classes),
        "in_domain_test": _data_record(
            test, data.in_domain_test, dropped=data.dropped.get("in_domain_test", 0)
        ),
        "outliers": {name: _data_record(suite.outliers[name], each) for name, each in outliers},
        "sets": {
            group: {
                name: _data_record(suite.groups[group][name], s, dropped=data.dropped.get(name, 0))
                for name, s in sets.items()
            }
            for group, sets in data.groups.items()
        },
        "shift": {
            name: _data_record(suite.shift[name], s, dropped=data.dropped.get(name, 0))
            for name, s in data.shift.items()
        },
        "fingerprints": {n: f for n, f in data.fingerprints.items() if n not in PLANE_SETS},
    }


def _data_record(
    spec: SourceSpec, samples: Samples, classes: Sequence[str] = (), dropped: int = 0
) -> DataRecord:
    return DataRecord(
        source=spec.name,
        selection=spec.selection,
        samples=len(samples),
        dropped=dropped,
        damaged=samples.damaged,
        classes=list(classes),
    )


def _code(evaluations: Iterable[EvaluationRecord]) -> dict[str, str]:
    """Return the code of plugins behind the figures, by kind and name."""
    code: dict[str, str] = {}
    for each in evaluations:
        code |= each.code
        code |= {f"detector {name}": d.code for name, d in each.detectors.items() if d.code}
    return code


def _seconds(evaluation: EvaluationRecord) -> float:
    """Return what the training and the evaluation of a run took, in all sessions."""
    scoring = sum(detector.seconds for detector in evaluation.detectors.values())
    return evaluation.training_seconds + evaluation.seconds + scoring


def _warnings(evaluations: Iterable[EvaluationRecord]) -> Iterable[tuple[str, str]]:
    for each in evaluations:
        detectors = (message for one in each.detectors.values() for message in one.warnings)
        yield from ((each.title, message) for message in (*each.warnings, *detectors))


def _not_run(run: PlannedRun, reason: str) -> NotRun:
    config = run.config
    return NotRun(backbone=config.backbone, method=run.method, seed=config.seed, reason=reason)


def _detectors_not_run(evaluations: Iterable[EvaluationRecord]) -> Iterable[NotRun]:
    for each in evaluations:
        for name, detector in each.detectors.items():
            if detector.reason is not None:
                yield NotRun(
                    backbone=each.backbone,
                    method=each.method,
                    seed=each.seed,
                    detector=name,
                    reason=detector.reason,
                )


def _distinct(values: Iterable[_T]) -> list[_T]:
    return list(dict.fromkeys(values))
