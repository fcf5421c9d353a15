"""The confidence interval of a headline's AUROC, from stored scores if there are any."""

from collections.abc import Sequence
from dataclasses import dataclass

from dpn_plugin.bench import DataRecord
from dpn_plugin.metrics import AurocInterval, auroc_interval, auroc_interval_from_counts
from dpn_plugin.report.ranking import Headline
from dpn_plugin.report.results import Results, Scope
from dpn_plugin.report.stored_runs import StoredRun, find_all_runs

#: figures are printed to a tenth of a per cent; outputs that give another figure are not its own
_LARGEST_DIFFERENCE = 5e-4


@dataclass(frozen=True)
class HeadlineInterval:
    """
    The 95 % interval of the AUROC of a headline, as fractions.

    :param low: lower end
    :param high: upper end
    :param method: how it was computed: ``"DeLong"`` or ``"Hanley-McNeil"``
    """

    low: float
    high: float
    method: str


def headline_interval(results: Results, headline: Headline) -> HeadlineInterval | None:
    """
    Return the interval of a winner's mean AUROC over sets and seeds.

    DeLong's method is used if the winner's scores are stored for all seeds. Hanley and McNeil's
    needs only the numbers of samples.

    :return: ``None`` if these are unknown, too
    """
    stored = _from_scores(results, headline)
    if stored is not None:
        return _mean(stored, "DeLong")
    counted = _from_counts(results, headline)
    return _mean(counted, "Hanley-McNeil") if counted else None


def _mean(intervals: Sequence[AurocInterval], method: str) -> HeadlineInterval:
    # test samples are the same for all seeds. The standard deviation of a mean is at most the mean
    # of the standard deviations, however the parts are correlated: this is never too narrow.
    low = sum(each.low for each in intervals) / len(intervals)
    high = sum(each.high for each in intervals) / len(intervals)
    return HeadlineInterval(low, high, method)


def _from_scores(results: Results, headline: Headline) -> list[AurocInterval] | None:
    winner = headline.winner
    scope = Scope(headline.suite, winner.backbone)
    try:
        runs = find_all_runs(results.suite_folders(headline.suite), scope, [winner.method])
        found = [_interval_of_run(run, headline) for run in runs]
    except (ValueError, KeyError):  # not stored, damaged, or of other sets
        return None
    if len(found) != winner.n:
        return None
    mean = sum(each.auroc for each in found) / len(found)
    return found if abs(mean - winner.mean) <= _LARGEST_DIFFERENCE else None


def _interval_of_run(run: StoredRun, headline: Headline) -> AurocInterval:
    scores = run.read_scores(headline.winner.detector)
    own = (scores[f"{headline.group}.{name}"] for name in headline.sets)
    return auroc_interval(scores["in_domain_test"], *own)


def _from_counts(results: Results, headline: Headline) -> list[AurocInterval]:
    tested: dict[str, tuple[DataRecord, DataRecord]] = {}
    for record in results.records:
        if record.suite == headline.suite:
            for name, data in record.sets.get(headline.group, {}).items():
                tested.setdefault(name, (record.in_domain_test, data))
    try:
        return [
            auroc_interval_from_counts(headline.winner.mean, inside.samples, outside.samples)
            for inside, outside in tested.values()
        ]
    except ValueError:  # a damaged AUROC, or no samples
        return []
