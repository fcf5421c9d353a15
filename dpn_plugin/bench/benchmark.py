"""
A benchmark: plan, search; for each run train, collect outputs, evaluate; then write the results.

:func:`run_benchmark` carries out a plan. :class:`Benchmark` does the work of one process; an
:class:`~dpn_plugin.bench.Executor` decides in which processes the runs of the plan are carried out.
"""

from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from itertools import count
from pathlib import Path

from dpn_plugin._distributed import Processes
from dpn_plugin._files import locked, remove_abandoned
from dpn_plugin._signals import Stopped
from dpn_plugin.bench.check import describe_resizings
from dpn_plugin.bench.data import SuiteData, load_suite_data
from dpn_plugin.bench.estimate import estimate_plan, why_too_large
from dpn_plugin.bench.executor import BenchMonitor, Executor, RunMonitor, RunResult
from dpn_plugin.bench.plan import Plan
from dpn_plugin.bench.planned_run import PlannedRun
from dpn_plugin.bench.record import NotRun
from dpn_plugin.bench.results import write_results
from dpn_plugin.bench.search import Trials
from dpn_plugin.bench.sharing import sibling_folders
from dpn_plugin.data import Samples
from dpn_plugin.errors import CannotWrite, UserError
from dpn_plugin.evaluation import (
    Evaluation,
    EvaluationRecord,
    WarningCollector,
    collect_warnings,
)
from dpn_plugin.outputs import FitSets, FrozenFeatures, OutputStore, RunOutputs
from dpn_plugin.runs import TrainedRun, is_frozen, load_base, method_of, open_run, remove_run
from dpn_plugin.training import TrainingData, load_training_data, train


class Benchmark:
    """
    A plan with its data, in one process.

    :param plan: what to do
    :param processes: this process and the others that carry out every run together
    :param warnings: receives warnings
    :param data: the data of the suite, if it is loaded already
    :raises UserError: if data is missing or does not fit
    """

    def __init__(
        self,
        plan: Plan,
        processes: Processes,
        warnings: WarningCollector,
        data: SuiteData | None = None,
    ) -> None:
        self.processes, self.warnings = processes, warnings
        self.data = data or load_suite_data(plan, plan.skip_missing)
        # worker processes load exactly the sets that this one has found
        self.plan = plan.without_sets(self.data.skipped)
        self.store = OutputStore(plan.out / "store")
        self._features: dict[str, FrozenFeatures] = {}

    def search(self, monitor: BenchMonitor) -> None:
        """
        Search the hyper-parameters of methods in this process, and plan the runs with them.

        :param monitor: receives every trial
        :raises UserError: if a method cannot be trained, or the folder holds runs of another plan
        """
        pending = self.processes.broadcast(self.plan.find_pending)
        total, started = sum(each.settings.trials for each in pending), count()

        def start(run: PlannedRun) -> RunMonitor:
            return monitor.start_run(next(started), total, run)

        for search in pending:
            Trials(search, self._load_training_data, self.processes, start).carry_out()
        if pending:
            self.plan = self.processes.broadcast(self.plan.with_choices)

    def carry_out(self, index: int, monitor: RunMonitor) -> RunResult:
        """
        Train and evaluate a run, as far as that has not been done before.

        :param index: of the run, in the plan's order
        :param monitor: receives every step and detector
        :raises CannotWrite: if the disk is full, which does not concern one run only
        """
        run = self.plan.runs[index]
        try:
            self.processes.broadcast(lambda: self._prepare_folder(run))
            data = self._load_training_data(run)
            trained = self._train(run, data, monitor)
            return RunResult(index, self._evaluate(run, trained, data, monitor))
        except CannotWrite:
            raise
        except UserError as error:
            return RunResult(index, reason=str(error))
        finally:
            monitor.ended()

    def _load_training_data(self, run: PlannedRun) -> TrainingData:
        frozen = self._frozen_features(run)
        featurize = None if frozen is None else frozen.as_points
        return load_training_data(run.config, method_of(run.config), self.data.datasets, featurize)

    def _frozen_features(self, run: PlannedRun) -> FrozenFeatures | None:
        """Return the features that a run trains heads on, ``None`` if it trains whole networks."""
        config = run.config
        if not is_frozen(config):
            return None
        fields = ("backbone", "stem", "pretrained", "weights", "network_size")
        key = str([getattr(config, name) for name in fields])
        if key not in self._features:
            base = load_base(config, tuple(self.data.in_domain.inputs.shape[1:]))
            self._features[key] = FrozenFeatures(base, self.store, self.processes)
        return self._features[key]

    def _train(self, run: PlannedRun, data: TrainingData, monitor: RunMonitor) -> TrainedRun:
        if run.trained is not None:
            trained = open_run(run.trained)
        else:
            trained = train(
                run.config,
                run.folder,
                device=str(self.processes.device),
                is_ours=True,
                monitor=monitor,
                data=data,
                siblings=sibling_folders(run, self.plan.runs, self.plan.out),
            )
        if trained.record.data != data.compute_fingerprints():
            raise UserError(
                f"The data is not what the run in {trained.folder} was trained on, though it has "
                "the same name. Use another --out, or restore the data."
            )
        return trained

    def _evaluate(
        self, run: PlannedRun, trained: TrainedRun, data: TrainingData, monitor: RunMonitor
    ) -> EvaluationRecord | None:
        fingerprints = {**self.data.fingerprints, **trained.record.data}
        most = self.plan.suite.fit_samples
        sets = FitSets.of({**self.data.sets, **data.parts}, fingerprints, most)
        points = self._points(run, data, sets)
        outputs = RunOutputs(
            trained, self.store, sets.samples, sets.fingerprints, self.processes, points
        )
        evaluation = Evaluation(
            outputs,
            self.plan.detectors,
            run.folder,
            method=run.method,
            tune=self.plan.tune,
            calibration_samples=self.plan.suite.calibration_samples,
            fit_samples=most,
            again=self.plan.again,
            warnings=self.warnings,
        )
        outputs.collect(self.processes.broadcast(evaluation.required_sets))
        return evaluation.complete(monitor.evaluating) if self.processes.primary else None

    def _points(
        self, run: PlannedRun, data: TrainingData, sets: FitSets
    ) -> Callable[[str], Samples] | None:
        """Return what gives the features of a set by name, for a run of heads."""
        frozen, own = self._frozen_features(run), data.features
        if frozen is None or own is None:
            return None

        def points(name: str) -> Samples:
            known = own.parts.get(name)
            return frozen.as_points(sets.samples[name]) if known is None else sets.part(name, known)

        return points

    def _prepare_folder(self, run: PlannedRun) -> None:
        """Remove a run that is damaged, or that is to be trained again."""
        damage = run.find_damage()
        if run.again:
            remove_run(run.folder, run.config)
        elif damage is not None and run.trained is not None:
            raise UserError(f"{damage}; train the run again.")
        elif damage is not None:
            self.warnings.add(f"{damage}; the run is trained again.")
            remove_run(run.folder, run.config)


def run_benchmark(plan: Plan, executor: Executor, monitor: BenchMonitor, command: str = "") -> bool:
    """
    Carry out a plan and write ``results.csv``, ``leaderboard.csv`` and ``bench.json``.

    What was done before is reused. Files whose content stays the same are not written again.

    :param plan: what to do
    :param executor: carries out the runs
    :param monitor: receives every run, step and detector
    :param command: the command that started it, for the record
    :return: whether this process wrote the results: of those that ``torchrun`` starts, one does
    :raises UserError: if another process uses the folder, data is missing, or nothing can run
    """
    started = datetime.now(UTC).isoformat(timespec="seconds")
    processes = Processes.join(plan.device)
    with collect_warnings(monitor.on_warning) as warnings, _lock(plan.out, processes):
        _warn_of_left_out(plan.not_run, warnings)
        before = len(warnings.messages)
        benchmark = Benchmark(plan, processes, warnings)
        notes = warnings.since(before)
        for name, reason in benchmark.data.skipped.items():
            warnings.add(f"The test set {name} is left out: {reason}")
        for sentence in describe_resizings(benchmark.plan, benchmark.data):
            monitor.on_warning(sentence)  # about the time that it takes, not about the results
        if processes.primary:
            cost = estimate_plan(benchmark.plan, benchmark.data, timed=False)
            for sentence in why_too_large(cost, plan.out):
                monitor.on_warning(sentence)
        benchmark.search(monitor)
        results = _collect_results(executor.execute(benchmark, monitor), benchmark.plan, warnings)
        if processes.primary:
            device = str(processes.device)
            write_results(benchmark.plan, benchmark.data, results, command, device, started, notes)
    return processes.primary


def _collect_results(
    results: Iterable[RunResult], plan: Plan, warnings: WarningCollector
) -> list[tuple[PlannedRun, EvaluationRecord | str]]:
    """Return every run with its evaluation or the reason why there is none, in order."""
    found: dict[int, EvaluationRecord | str] = {}
    try:
        for each in results:
            if each.evaluation is not None:
                found[each.index] = each.evaluation
            elif each.reason is not None:
                found[each.index] = each.reason
                warnings.add(f"{plan.runs[each.index].title} is not run: {each.reason}")
    except Stopped:
        raise
    except KeyboardInterrupt:  # between two runs, or in this process while workers work
        raise Stopped("Stopped. The same command goes on from there.") from None
    return [(plan.runs[index], found[index]) for index in sorted(found)]


def _warn_of_left_out(not_run: Iterable[NotRun], warnings: WarningCollector) -> None:
    methods: dict[str, list[str]] = {}
    for each in not_run:
        methods.setdefault(each.reason, []).append(str(each.method))
    for reason, names in methods.items():
        warnings.add(f"Left out: {', '.join(names)}; {reason}.")


@contextmanager
def _lock(out: Path, processes: Processes) -> Iterator[None]:
    """Within the block, no other benchmark writes to the folder."""
    busy = f"Another dpn bench is at work in {out}. Wait for it, or use another --out."
    lock = locked(out / ".lock", busy)
    processes.broadcast(lock.__enter__)
    try:
        if processes.primary:
            remove_abandoned(out, recursive=True)
        yield
    finally:
        if processes.primary:
            lock.__exit__(None, None, None)
