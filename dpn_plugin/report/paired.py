"""Who is ahead of whom: paired differences of AUROC on the scores that benchmarks store."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property

import pandas as pd

from dpn_plugin.errors import UserError
from dpn_plugin.metrics import PairedDifference, Placements, find_placements, paired_differences
from dpn_plugin.report.names import MAX_P
from dpn_plugin.report.results import Results, Scope
from dpn_plugin.report.stored_runs import StoredRun, find_all_runs

#: a method with a detector
Pair = tuple[str, str]


@dataclass(frozen=True)
class PairedRow:
    """
    A method with a detector compared with the reference of its backbone and OOD set.

    :param scope: the suite and the backbone
    :param dataset: an OOD set, or ``"near"`` or ``"far"`` for the mean of the group
    :param reference: method and detector with the highest mean AUROC, or those that were asked for
    :param reference_auroc: its mean over seeds, as a fraction
    :param other: the method and the detector that it is compared with
    :param auroc: its mean over seeds, as a fraction
    :param paired: the AUROC of the reference minus that of the other
    """

    scope: Scope
    dataset: str
    reference: Pair
    reference_auroc: float
    other: Pair
    auroc: float
    paired: PairedDifference


def paired_rows(
    results: Results, reference: Pair | None = None, others: Sequence[Pair] = ()
) -> list[PairedRow]:
    """
    Return the comparisons on every group of OOD sets, and on every set of a group of several.

    The reference is compared with the best detector of every method, the best method of every
    detector, and Max.P of the baseline. What lacks seeds or stored scores is left out.

    :param results: of one or several benchmarks
    :param reference: a method with a detector; the best pair of each set if left out
    :param others: compare it with these alone
    """
    named = [*([reference] if reference else []), *others]
    return [
        row
        for scope in results.scopes()
        for row in _rows_of_scope(results, scope, named, choose=not others)
    ]


def _rows_of_scope(
    results: Results, scope: Scope, named: Sequence[Pair], choose: bool
) -> Iterator[PairedRow]:
    means = _means(results, scope)
    scores = _StoredScores(results, scope)
    for dataset, sets in _datasets(results.sets(scope.suite)).items():
        own = means[means["dataset"].eq(dataset)]
        if len(own):
            pairs = list(dict.fromkeys([*named, *(_contenders(own) if choose else ())]))
            yield from _compare(scope, dataset, sets, pairs, scores)


def _datasets(groups: dict[str, list[str]]) -> dict[str, list[str]]:
    """Return the keys of the sets that each comparison is about, e.g. ``far.mnist``."""
    found: dict[str, list[str]] = {}
    for group, names in groups.items():
        keys = [f"{group}.{name}" for name in names]
        if keys:
            found[group] = keys
        if len(keys) > 1:
            found |= {name: [key] for name, key in zip(names, keys, strict=True)}
    return found


def _means(results: Results, scope: Scope) -> pd.DataFrame:
    rows = results.rows(scope)
    rows = rows[rows["task"].eq("ood") & rows["metric"].eq("auroc") & rows["mean"].notna()]
    # pairs need the same seeds
    return rows[rows["n"].eq(rows["n"].max())].sort_values("mean", ascending=False, kind="stable")


def _contenders(rows: pd.DataFrame) -> list[Pair]:
    """Return the best pair and what it is compared with; the rows start with the best."""
    best = pd.concat([rows.drop_duplicates("method"), rows.drop_duplicates("detector")])
    max_p = rows[rows["method"].eq("baseline") & rows["detector"].isin(MAX_P)].head(1)
    chosen = pd.concat([best, max_p]).sort_values("mean", ascending=False, kind="stable")
    return [(str(a), str(b)) for a, b in zip(chosen["method"], chosen["detector"], strict=True)]


def _compare(
    scope: Scope,
    dataset: str,
    sets: Sequence[str],
    contenders: Sequence[Pair],
    scores: "_StoredScores",
) -> Iterator[PairedRow]:
    found = {pair: scores.placements(pair, sets) for pair in contenders}
    reference = found.pop(contenders[0])
    if reference is None:
        return
    others = {
        pair: each
        for pair, each in found.items()
        if each is not None and each.inside.shape == reference.inside.shape
    }
    differences = paired_differences(reference, list(others.values()))
    for (pair, each), paired in zip(others.items(), differences, strict=True):
        aurocs = float(reference.auroc.mean()), float(each.auroc.mean())
        yield PairedRow(scope, dataset, contenders[0], aurocs[0], pair, aurocs[1], paired)


class _StoredScores:
    """The scores of all methods and detectors of a suite and backbone, read when they are used."""

    def __init__(self, results: Results, scope: Scope) -> None:
        self.results, self.scope = results, scope

    @cached_property
    def runs(self) -> dict[str, list[StoredRun]]:
        """The runs of every method that were tested on the same samples, by seed."""
        folders = self.results.suite_folders(self.scope.suite)
        methods = list(dict.fromkeys(self.results.rows(self.scope)["method"]))
        try:
            runs = find_all_runs(folders, self.scope, methods)
        except UserError:  # a damaged record; the page says so elsewhere
            return {}
        found: dict[str, list[StoredRun]] = {}
        for run in runs:
            if run.record.data == runs[0].record.data:
                found.setdefault(run.record.method, []).append(run)
        return found

    def placements(self, pair: Pair, sets: Sequence[str]) -> Placements | None:
        """Return the placements of a method with a detector; ``None`` without its scores."""
        method, detector = pair
        inside, outside = [], []
        try:
            for run in self.runs.get(method, ()):
                scores = run.read_scores(detector)
                inside.append(scores["in_domain_test"])
                outside.append([scores[name] for name in sets])
            return find_placements(inside, outside)
        except (UserError, KeyError):
            return None
