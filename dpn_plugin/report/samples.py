"""The test images of a report, which the evaluation of each run has chosen and stored."""

from dataclasses import dataclass

from dpn_plugin.errors import UserError
from dpn_plugin.evaluation import SampleGroup, SamplesRecord, read_samples
from dpn_plugin.report.results import Results, Scope
from dpn_plugin.report.stored_runs import StoredRun, find_runs

_TITLES = {
    "accepted": "Accepted although OOD",
    "rejected": "Rejected although in-domain",
    "misclassified": "Misclassified",
}
_ORDERS = {
    "accepted": "lowest scores first",
    "rejected": "highest scores first",
    "misclassified": "lowest scores first",
}


@dataclass(frozen=True)
class MethodSamples:
    """
    The samples of one run.

    :param method: its method
    :param seed: its seed, the lowest one of the method
    :param record: its ``samples.json``
    """

    method: str
    seed: int
    record: SamplesRecord


@dataclass(frozen=True)
class SampleSet:
    """
    The samples of one backbone on one suite.

    :param scope: the suite and the backbone
    :param methods: the samples of each method that has some
    :param problems: a sentence for each file that cannot be shown
    """

    scope: Scope
    methods: tuple[MethodSamples, ...] = ()
    problems: tuple[str, ...] = ()


def find_samples(results: Results) -> list[SampleSet]:
    """Return the samples of every backbone on every suite that has some, or should have."""
    found = (_find(results, scope) for scope in results.scopes())
    return [each for each in found if each.methods or each.problems]


def group_title(group: SampleGroup) -> str:
    """Return the heading of a row of thumbnails."""
    where = f": {group.dataset} ({group.group})" if group.dataset else ""
    return f"{_TITLES[group.kind]}{where}"


def group_note(group: SampleGroup) -> str:
    """Return how many samples of the set a row stands for, and their order."""
    what = "OOD" if group.kind == "accepted" else "in-domain"
    share = f"{group.count:,} of {group.total:,} {what} samples"
    if not group.samples:
        return f"{share}."
    percent = 100 * group.count / max(group.total, 1)
    return f"{share} ({percent:.1f} %), {_ORDERS[group.kind]}."


def _find(results: Results, scope: Scope) -> SampleSet:
    methods = list(dict.fromkeys(results.rows(scope)["method"]))
    try:
        runs = find_runs(results.suite_folders(scope.suite), scope, methods)
    except UserError:  # the pictures say so
        return SampleSet(scope)
    shown, problems = [], []
    for run in runs:
        try:
            shown += _read(run)
        except UserError as error:
            problems.append(str(error))
    return SampleSet(scope, tuple(shown), tuple(problems))


def _read(run: StoredRun) -> list[MethodSamples]:
    """Return the samples of a run; none for points in the plane."""
    record = read_samples(run.folder)
    if record is None:
        return []
    if record.reason is not None:
        raise UserError(f"{run.record.title}: {record.reason}")
    return [MethodSamples(run.record.method, run.record.seed, record)]
