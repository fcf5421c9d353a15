"""The searches of hyper-parameters behind the results: budget, ranges and choice."""

import csv
import io
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from dpn_plugin.bench import SearchRecord, TrialRecord, describe_ranges, read_searches
from dpn_plugin.report.names import DASH
from dpn_plugin.report.results import Results
from dpn_plugin.report.table_text import escape_markdown, markdown_row, no_formula

#: the heads of the columns
COLUMNS = (
    "Suite", "Backbone", "Method", "Trials", "Ranges", "Chosen", "Held-out accuracy",
    "Held-out AUROC", "Seconds",
)  # fmt: skip


@dataclass(frozen=True)
class SearchRow:
    """
    The search of one method, as it is shown.

    :param suite: of the benchmark
    :param record: all of it
    """

    suite: str
    record: SearchRecord

    @property
    def cells(self) -> tuple[str, ...]:
        """The cells that follow :data:`COLUMNS`; figures are before and after the search."""
        record = self.record
        settings, first, best = record.settings, record.trials[0], record.chosen
        return (
            self.suite,
            record.backbone,
            record.method,
            f"{len(record.trials)} ({settings.sampler}, seed {settings.seed})",
            _joined(describe_ranges(settings.space)),
            _joined(best.values) or "the suite's settings",
            _change(first.accuracy, best.accuracy),
            _change(first.auroc, best.auroc) + (f" ({best.measure})" if best.measure else ""),
            f"{sum(each.seconds for each in record.trials):.0f}",
        )


def find_searches(results: Results) -> list[SearchRow]:
    """Return the finished searches of all methods that have results."""
    found = []
    for folder, record in zip(results.folders, results.records, strict=True):
        own = (each for each in read_searches(folder) if each.method in record.methods)
        found += [SearchRow(record.suite, each) for each in own]
    return found


def search_markdown(rows: Iterable[SearchRow]) -> str:
    """Return a Markdown table with one search a row."""
    lines = [markdown_row(list(COLUMNS)), markdown_row(["---"] * len(COLUMNS))]
    lines += [markdown_row([escape_markdown(cell) for cell in row.cells]) for row in rows]
    return "\n".join([*lines, ""])


def search_csv(rows: Sequence[SearchRow]) -> str:
    """Return CSV with one trial a row; figures are fractions."""
    out = io.StringIO()
    table = csv.writer(out, lineterminator="\n")
    heads = ("suite", "backbone", "method", "trial", "values", "accuracy", "auroc", "measure")
    table.writerow([*heads, "seconds", "chosen", "reason"])
    for row in rows:
        for number, trial in enumerate(row.record.trials):
            table.writerow(
                [
                    *map(no_formula, (row.suite, row.record.backbone, row.record.method)),
                    number,
                    no_formula(_joined(trial.values)),
                    *_figures(trial),
                    trial.seconds,
                    trial == row.record.chosen,
                    no_formula(trial.reason or ""),
                ]
            )
    return out.getvalue()


def _figures(trial: TrialRecord) -> list[float | str]:
    found = (trial.accuracy, trial.auroc, trial.measure)
    return ["" if each is None else each for each in found]


def _joined(values: Mapping[str, object]) -> str:
    return "; ".join(f"{key} {value}" for key, value in values.items())


def _change(before: float | None, after: float | None) -> str:
    if after is None:
        return DASH
    first = DASH if before is None else f"{100 * before:.2f}"
    return f"{first} → {100 * after:.2f}"
