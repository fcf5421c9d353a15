"""
The questions of the study: pairs that were named before it was run.

Every method is scored by its own measure: Max.P for networks that are trained for probabilities,
mutual information for Dirichlet networks, the features of a baseline for kNN and Mahalanobis++.
"""

from collections.abc import Sequence
from dataclasses import dataclass

from dpn_plugin.report import Pair, PairedRow, Results, paired_rows, points

_NAMES = {
    "baseline": "baseline", "oe": "OE", "dpn-minus": "DPN-", "dpn-plus": "DPN+",
    "dpn-rev": "reverse KL", "dpn-minus-anchored": "anchored DPN-", "binary": "the binary network",
    "deep-ensemble": "the ensemble",
}  # fmt: skip
_DETECTORS = {
    "dpn-maxp": "Max.P", "dpn-entropy": "entropy", "dpn-mi": "mutual information",
    "dpn-gaussian-kl": "Gaussian-KL", "knn": "kNN", "mahalanobis-pp": "Mahalanobis++",
    "binary": "",
}  # fmt: skip
_MINUS, _OE = ("dpn-minus", "dpn-mi"), ("oe", "dpn-maxp")


@dataclass(frozen=True)
class Question:
    """
    Which of two pairs of method and detector is ahead.

    :param one: the first pair
    :param other: the second pair
    :param otherwise: what to do if no difference can be shown
    """

    one: Pair
    other: Pair
    otherwise: str

    @property
    def title(self) -> str:
        """The question as people read it."""
        return f"{described(self.one)} or {described(self.other)}?"


QUESTIONS = (
    Question(_MINUS, _OE, "take OE, which has no option of its own"),
    Question(_MINUS, ("oe", "dpn-entropy"), "take OE, which has no option of its own"),
    Question(_MINUS, ("dpn-plus", "dpn-mi"), "take either"),
    Question(_MINUS, ("dpn-rev", "dpn-mi"), "take either"),
    Question(("dpn-minus-anchored", "dpn-mi"), _MINUS, "take DPN- as it is"),
    Question(
        ("dpn-minus", "dpn-gaussian-kl"), _MINUS, "take mutual information, which fits nothing"
    ),
    Question(_MINUS, ("baseline", "knn"), "take kNN, which needs no outliers"),
    Question(_MINUS, ("baseline", "mahalanobis-pp"), "take Mahalanobis++, which needs no outliers"),
    Question(_OE, ("baseline", "knn"), "take kNN, which needs no outliers"),
    Question(_OE, ("binary", "binary"), "take OE, which needs one network"),
    Question(("deep-ensemble", "dpn-maxp"), ("baseline", "dpn-maxp"), "take one network"),
)


def described(pair: Pair) -> str:
    """Return a pair as people read it, e.g. ``kNN on baseline``."""
    method, detector = _NAMES.get(pair[0], pair[0]), _DETECTORS.get(pair[1], pair[1])
    if not detector:
        return method
    of_features = pair[1] in ("knn", "mahalanobis-pp")
    return f"{detector} on {method}" if of_features else f"{method} ({detector})"


@dataclass(frozen=True)
class Answer:
    """
    The paired differences of one question on all sets of all suites.

    :param question: the question
    :param rows: the comparisons; near and far means, and the sets of a group of several
    """

    question: Question
    rows: tuple[PairedRow, ...]

    def where(self, verdict: str) -> list[str]:
        """Return the sets with this verdict, each with the lead (or the difference) in points."""
        sign = -1 if verdict == "behind" else 1
        return [
            f"{row.dataset} of {row.scope.suite} ({points(sign * row.paired.difference)})"
            for row in self.rows
            if row.paired.verdict == verdict
        ]

    @property
    def text(self) -> str:
        """The answer in words, which follow from the verdicts alone."""
        one, other = described(self.question.one), described(self.question.other)
        ahead, behind, undecided = map(self.where, ("ahead", "behind", "undecided"))
        if ahead and behind:
            start = "It depends on the data."
        elif ahead:
            start = f"{_capital(one)}."
        elif behind:
            start = f"{_capital(other)}."
        else:
            start = f"No difference could be shown: {self.question.otherwise}."
        parts = [
            f"{_capital(one)} is ahead on {', '.join(ahead)}." if ahead else "",
            f"{_capital(other)} is ahead on {', '.join(behind)}." if behind else "",
            f"Undecided: {', '.join(undecided)}." if undecided else "",
        ]
        return " ".join(filter(None, [start, *parts]))


def answers(results: Results) -> list[Answer]:
    """Return the answers to all questions that the results can answer."""
    found = []
    for question in QUESTIONS:
        rows = tuple(paired_rows(results, question.one, [question.other]))
        if rows:
            found.append(Answer(question, _without_means(results, rows)))
    return found


def _without_means(results: Results, rows: Sequence[PairedRow]) -> tuple[PairedRow, ...]:
    """Leave out the means of groups of several sets, whose sets have rows of their own."""
    several = {
        (suite, group)
        for suite in results.suites
        for group, names in results.sets(suite).items()
        if len(names) > 1
    }
    return tuple(row for row in rows if (row.scope.suite, row.dataset) not in several)


def _capital(text: str) -> str:
    return text if text.startswith("kNN") else text[0].upper() + text[1:]
