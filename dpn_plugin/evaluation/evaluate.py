"""The evaluation of one trained run with every detector, or with those that are missing."""

import time
from collections.abc import Callable, Collection, Mapping, Sequence
from importlib.metadata import version
from pathlib import Path

from torch import Tensor

from dpn_plugin.evaluation.peak_memory import PeakMemory
from dpn_plugin.evaluation.plane import PLANE_SETS
from dpn_plugin.evaluation.reasons import why_not_run
from dpn_plugin.evaluation.record import (
    DetectorEvaluation,
    EvaluationRecord,
    Identity,
    OutputKeys,
    detector_code,
    read_evaluation,
    write_evaluation,
)
from dpn_plugin.evaluation.rows import (
    calibration_rows,
    classification_rows,
    decision_rows,
    detector_rows,
    gap_rows,
)
from dpn_plugin.evaluation.sample_record import has_samples, write_samples
from dpn_plugin.evaluation.samples import choose_samples, has_images
from dpn_plugin.evaluation.scorers import DetectorScorer, Scorer, create_scorer, scorer_names
from dpn_plugin.evaluation.shared_scores import score_together
from dpn_plugin.evaluation.shift_rows import detector_shift_rows, shift_rows
from dpn_plugin.evaluation.stored_scores import write_scores
from dpn_plugin.evaluation.warning_collector import WarningCollector
from dpn_plugin.outputs import CALIBRATION, HELD_OUT, RunOutputs
from dpn_plugin.runs import diagnose


class Evaluation:
    """
    The evaluation of one run. What is on the disk already is not computed again.

    :param outputs: the outputs of the run; they are collected between :meth:`required_sets` and
        :meth:`complete`
    :param detectors: names of the wanted detectors
    :param folder: where ``evaluation.json`` and ``samples.json`` are, or will be
    :param method: what the figures call the method
    :param tune: search the detectors' hyper-parameters on held-out data
    :param calibration_samples: in-domain and OOD samples of a calibration error, at most
    :param fit_samples: training and held-out samples that detectors are fitted to, at most; for the
        record, because ``outputs`` have no more
    :param again: detectors that are evaluated even if their figures are known
    :param warnings: receives warnings
    """

    def __init__(
        self,
        outputs: RunOutputs,
        detectors: Sequence[str],
        folder: Path,
        *,
        method: str,
        tune: bool,
        calibration_samples: int | None = None,
        fit_samples: int | None = None,
        again: Collection[str] = (),
        warnings: WarningCollector,
    ) -> None:
        self.outputs, self.folder, self.tune, self.warnings = outputs, folder, tune, warnings
        self.method = method
        self.names = scorer_names(outputs.run.method, detectors)
        self.again, self.calibration_samples = again, calibration_samples
        self.fit_samples = fit_samples
        self.test_sets = [
            name for name in outputs.samples if name.partition(".")[0] in ("near", "far")
        ]
        self.shift_sets = [name for name in outputs.samples if name.startswith("shift.")]
        self._calibration = [CALIBRATION] if CALIBRATION in outputs.samples else []
        self.scorers: dict[str, Scorer | Exception] = {}
        self.record: EvaluationRecord | None = None
        self.samples_missing = False

    def required_sets(self) -> list[str]:
        """Find out what is missing, and return the sets whose outputs :meth:`complete` reads."""
        record = read_evaluation(self.folder)
        if record is not None and record.identity == self._identity():
            self.record = record
        missing = self._missing(self.record) if self.record else self.names
        wanted = [name for name in self.names if name in missing or name in self.again]
        self.scorers = {name: self._create_scorer(name) for name in wanted}
        # those of test sets are also required if all figures are known: the report reads them
        plane = [name for name in PLANE_SETS if name in self.outputs.samples]
        required = ["in_domain_test", *self.test_sets, *self.shift_sets, *plane, *self._calibration]
        self.samples_missing = has_images(self.outputs) and not has_samples(
            self.folder, self._identity()
        )
        if self.record is None or self.samples_missing:
            required += self.outputs.held_out_names
        for scorer in self.scorers.values():
            required += scorer.required_sets if isinstance(scorer, Scorer) else ()
        return list(dict.fromkeys(required))

    def complete(self, on_detector: Callable[[str], None]) -> EvaluationRecord:
        """
        Compute and store what is missing, and return the record of all detectors so far.

        :param on_detector: called with the name of each detector before it is evaluated
        """
        record = self.record
        if record is None:
            record = self._evaluate_general()
            write_evaluation(self.folder, record)
        if self.samples_missing:
            chosen = choose_samples(self.outputs, self.test_sets, record.identity)
            write_samples(self.folder, chosen)
        sets = ["in_domain_test", *self.test_sets, *self.shift_sets, *self._calibration]
        score_together(self.outputs, self.scorers, sets, self.warnings, on_detector)
        for name in list(self.scorers):
            on_detector(name)
            # popped, because a fitted detector may hold a copy of the training features
            record.detectors[name] = self._evaluate_detector(name, self.scorers.pop(name))
            write_evaluation(self.folder, record)
        return record

    def _missing(self, record: EvaluationRecord) -> list[str]:
        """Return the detectors without figures, or whose scores are not in the store."""
        found, store = record.missing(self.names, self.tune), self.outputs.store
        known = {n: d.scores for n, d in record.detectors.items() if d.scores and n not in found}
        return [*found, *(name for name, key in known.items() if store.open(key) is None)]

    def _create_scorer(self, name: str) -> Scorer | Exception:
        try:
            return create_scorer(self.outputs, name, self.tune)
        except Exception as error:  # of a plugin's detector; reported when it is evaluated
            return error

    def _identity(self) -> Identity:
        hashes = {name: key.hash for name, key in self.outputs.keys.items()}
        versions = {name: version(name) for name in ("dpn-plugin", "pytorch-ood")}
        return Identity(
            outputs=hashes,
            versions=versions,
            calibration_samples=self.calibration_samples,
            fit_samples=self.fit_samples,
        )

    def _evaluate_general(self) -> EvaluationRecord:
        start, before = time.perf_counter(), len(self.warnings.messages)
        outputs, run = self.outputs, self.outputs.run
        for problem in diagnose(run):
            self.warnings.add(problem)
        test = outputs.arrays("in_domain_test")
        ood = {name: outputs.arrays(name) for name in self.test_sets}
        rows = classification_rows(test)
        rows += calibration_rows(outputs.held_out(), test, ood, self.calibration_samples)
        shifted = {_set_name(name): outputs.arrays(name) for name in self.shift_sets}
        rows += shift_rows(outputs.held_out(), test, shifted)
        if not run.method.averages and not run.method.has_ood_classifier:
            rows += gap_rows(test, ood)
        networks = run.record.networks.values()
        return EvaluationRecord(
            identity=self._identity(),
            backbone=run.config.backbone,
            method=self.method,
            seed=run.config.seed,
            data={
                name: outputs.keys[name].data
                for name in ("in_domain_test", *self.test_sets, *self.shift_sets)
            },
            code=run.record.code,
            outputs=self._output_keys(),
            samples=self._sample_counts(),
            general=rows,
            warnings=self.warnings.since(before),
            training_seconds=sum(network.seconds for network in networks),
            seconds=round(time.perf_counter() - start, 3),
        )

    def _store_scores(self, name: str, scores: Mapping[str, Tensor]) -> str:
        return write_scores(self.outputs.store, self.outputs.keys["in_domain_test"], name, scores)

    def _sample_counts(self) -> dict[str, int]:
        fitted = [name for name in ("train", *HELD_OUT) if name in self.outputs.samples]
        names = ["in_domain_test", *self._calibration, *fitted]
        return {name: len(self.outputs.samples[name]) for name in names}

    def _output_keys(self) -> OutputKeys:
        groups: dict[str, dict[str, str]] = {}
        for name in (*self.test_sets, *self.shift_sets, *PLANE_SETS):
            group, _, set_name = name.partition(".")
            if name in self.outputs.keys:
                groups.setdefault(group, {})[set_name] = self.outputs.keys[name].hash
        own = {n: self.outputs.keys[n].hash for n in ("in_domain_test", *self._calibration)}
        return OutputKeys(**own, **groups)

    def _evaluate_detector(self, name: str, scorer: Scorer | Exception) -> DetectorEvaluation:
        start, before = time.perf_counter(), len(self.warnings.messages)
        memory = PeakMemory(self.outputs.processes.device)
        found = DetectorEvaluation(tuned=self.tune, code=detector_code(name))
        try:
            if isinstance(scorer, Exception):
                raise scorer
            found.hyperparameters = scorer.fit()
            in_scores = scorer.score("in_domain_test")
            out_scores = {each: scorer.score(each) for each in self.test_sets}
            test = self.outputs.arrays("in_domain_test")
            rows = detector_rows(name, in_scores, out_scores, test)
            shifted = {_set_name(each): scorer.score(each) for each in self.shift_sets}
            rows += detector_shift_rows(name, in_scores, shifted, out_scores)
            if self._calibration:
                rows += decision_rows(name, scorer.score_calibration(), in_scores, out_scores)
            found.rows = rows
            found.scores = self._store_scores(name, {"in_domain_test": in_scores, **out_scores})
        except Exception as error:  # of a plugin's detector; the others go on
            # one that failed is tried again, because more memory may be free then
            found.reason, found.failed = why_not_run(error)
        found.warnings = self.warnings.since(before)
        found.seconds = round(time.perf_counter() - start, 3)
        found.peak_memory = memory.measure()
        if isinstance(scorer, DetectorScorer) and scorer.prepared is not None:
            scorer.prepared.add_to(found)
        return found


def _set_name(name: str) -> str:
    """Return the name of a set without its group."""
    return name.partition(".")[2]
