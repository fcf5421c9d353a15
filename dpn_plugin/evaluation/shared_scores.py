"""The scores of all detectors that read inputs, with one pass over every set."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager

from dpn_plugin.detectors import Together, fits_on, reads
from dpn_plugin.evaluation.peak_memory import PeakMemory
from dpn_plugin.evaluation.prepared import PreparedScores
from dpn_plugin.evaluation.scorers import DetectorScorer, Scorer
from dpn_plugin.evaluation.warning_collector import WarningCollector
from dpn_plugin.outputs import RunOutputs


def score_together(
    outputs: RunOutputs,
    scorers: Mapping[str, Scorer | Exception],
    sets: Sequence[str],
    warnings: WarningCollector,
    on_detector: Callable[[str], None],
) -> None:
    """
    Fit and score the detectors that read inputs, and keep the scores in their scorers.

    Those that read stored outputs are not touched, nor those that are tuned or combined.

    :param outputs: of the run
    :param scorers: by name; those that could not be created are exceptions
    :param sets: names of the sets that are scored
    :param warnings: receives warnings
    :param on_detector: called with the names before a pass
    """
    chosen = {
        name: each
        for name, each in scorers.items()
        if isinstance(each, DetectorScorer) and _reads_inputs(each)
    }
    if not chosen:
        return
    group = _Group(outputs, chosen, warnings)
    memory = PeakMemory(outputs.processes.device)
    on_detector(", ".join(chosen))
    group.fit()
    for name in sets:
        group.score(name)
    group.finish(memory.measure())


def _reads_inputs(scorer: DetectorScorer) -> bool:
    return not scorer.tuned and reads(scorer.detector) == "inputs"


class _Group:
    """
    Detectors that are scored together.

    :param outputs: of the run
    :param scorers: by name; each gets its scores as ``prepared``
    :param warnings: receives warnings
    """

    def __init__(
        self,
        outputs: RunOutputs,
        scorers: Mapping[str, DetectorScorer],
        warnings: WarningCollector,
    ) -> None:
        self.outputs, self.scorers, self.warnings = outputs, scorers, warnings
        detectors = {name: each.detector for name, each in scorers.items()}
        self.together = Together(detectors, on_step=self._noting_warnings)
        self.prepared = {name: PreparedScores() for name in scorers}

    def fit(self) -> None:
        """Fit those that need to be: to stored features, or all others in one pass."""
        of_inputs = []
        for name, scorer in self.scorers.items():
            if scorer.detector.requires_fit and fits_on(scorer.detector) == "inputs":
                of_inputs.append(name)
            else:
                self.together.attempt(name, scorer.fit)
        with self._failing_together():
            self.together.fit(of_inputs, self.outputs.batches("train"))

    def score(self, set_name: str) -> None:
        """Score a set."""
        with self._failing_together():
            for name, found in self.together.score(self.outputs.batches(set_name)).items():
                self.prepared[name].scores[set_name] = found

    def finish(self, peak_memory: int | None) -> None:
        """Hand the scores to the scorers."""
        for name, each in self.prepared.items():
            each.error = self.together.failures.get(name)
            each.seconds, each.peak_memory = self.together.seconds(name), peak_memory
            self.scorers[name].prepared = each

    @contextmanager
    def _failing_together(self) -> Iterator[None]:
        """If the samples cannot be read, no detector can be scored."""
        try:
            yield
        except Exception as error:
            for name in self.scorers:
                self.together.failures.setdefault(name, error)

    @contextmanager
    def _noting_warnings(self, name: str) -> Iterator[None]:
        before = len(self.warnings.messages)
        yield
        known = [*self.prepared[name].warnings, *self.warnings.since(before)]
        self.prepared[name].warnings = list(dict.fromkeys(known))
