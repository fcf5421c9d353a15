"""``docs/results.md``, made of the records of the study."""

from collections.abc import Sequence
from pathlib import Path

from benchmark_suites.study.questions import answers, described
from benchmark_suites.study.tables import (
    classification_table,
    data_text,
    paired_table,
    results_tables,
    search_table,
)
from dpn_plugin.report import PairedRow, Results, load_results, paired_rows, points

_START = """\
<!-- Written by `tox -e study` from the records of its benchmarks. Do not edit. -->

# Results: who wins where

Many methods and detectors, the same data, seeds and budgets. `tox -e study` trains and measures
everything on this page and writes it: figures, verdicts, and the sentences that depend on them.
The networks are small and the sets are cut, so that it takes minutes on two cores: read the
differences, not the levels.

"Ahead" means that the 95 % interval of the paired difference of two AUROC lies above zero. The
interval is a bootstrap over test samples and seeds, see [](suites.md). What is neither ahead nor
behind is undecided.
"""

#: so many pairs that the best one is not ahead of are named
_NAMED = 5

_READING = """\
## How to read this

- `oe`, `binary`, `energy-ft`, `mixoe` and all `dpn-*` methods are trained with outliers; all others
  are not. That is a difference of settings, and often the largest one.
- Test sets that are like the outliers of the training are the easy ones for methods with outliers.
  `quickdraw` has other classes of drawings than the outliers, but they are drawings, too; `mnist`
  and the noise are not.
- The questions were fixed before the study was run, each method with its own measure, but after a
  look at an earlier table of frozen features with similar figures. "The best pair" of a suite is
  chosen on the test data, and its lead is a little too large.
- On a frozen network, detectors of features alone (`mahalanobis`, `mahalanobis-pp`, `knn`) score
  alike for all methods; they are shown for the baseline, and so is `vim`, which also reads logits.
- Seconds are means of one run; other work on the machine counts.
- Of many comparisons of equals, one in forty is called "ahead", and one in forty "behind", by
  chance.
"""


def page(folders: Sequence[Path], left_out: Sequence[str] = ()) -> str:
    """
    Return the page.

    :param folders: the benchmarks of the study
    :param left_out: suites that were not run, with the reason
    :raises UserError: if a folder holds no results
    """
    results = load_results(folders)
    parts = [_START, *left_out, "## In short", _winners(results), "## Which one?", _which(results)]
    parts.append(_READING)
    for scope in results.scopes():
        record = next(each for each in results.records if each.suite == scope.suite)
        parts += [f"## {record.title.removeprefix('Study: ')}", data_text(record, scope.backbone)]
        parts.append(classification_table(results, scope))
        parts += results_tables(results, scope)
        if search := search_table(results, scope.suite):
            parts += [_SEARCH, search]
    return "\n\n".join(part.strip() for part in parts) + "\n"


_SEARCH = (
    "**Search**: the same number of trials for every method, on held-out data and held-out "
    "outliers only. Figures are those of the suite's settings → those of the choice."
)


def _winners(results: Results) -> str:
    """Return whom the best pair of every suite and group is ahead of."""
    groups: dict[tuple[str, str], list[PairedRow]] = {}
    for row in paired_rows(results):
        if row.dataset in ("near", "far"):
            groups.setdefault((row.scope.suite, row.dataset), []).append(row)
    return "\n".join(f"- {_winner(*key, rows)}" for key, rows in groups.items())


def _winner(suite: str, group: str, rows: Sequence[PairedRow]) -> str:
    first = rows[0]
    ahead = [row for row in rows if row.paired.verdict == "ahead"]
    undecided = [row for row in rows if row.paired.verdict != "ahead"]
    rest = [
        f"{described(row.other)} ({points(-row.paired.difference)})" for row in undecided[:_NAMED]
    ]
    if len(undecided) > _NAMED:
        rest.append(f"and {len(undecided) - _NAMED} more")
    start = (
        f"**{suite}, {group}**: the best pair is {described(first.reference)} with "
        f"{100 * first.reference_auroc:.1f} % AUROC, ahead of {len(ahead)} of {len(rows)} others"
    )
    return f"{start}; not ahead of {', '.join(rest)}." if rest else f"{start}."


def _which(results: Results) -> str:
    """Return the answer to every question, with its differences."""
    parts = []
    for answer in answers(results):
        title = answer.question.title
        parts += [f"### {title[0].upper()}{title[1:]}", answer.text, paired_table(answer.rows)]
    return "\n\n".join(parts)
