"""What a reader must know before quoting figures: how little they may be based on."""

import re
from collections.abc import Iterable, Iterator

from dpn_plugin.bench import BenchRecord, DataRecord
from dpn_plugin.report.ranking import Headline
from dpn_plugin.report.results import Results

#: a test set with fewer samples is a small one: an AUROC of 90 % then has an interval of ± 1.4
FEW_SAMPLES = 1000
#: the share of the way from guessing to perfect below which an accuracy is near chance
NEAR_CHANCE = 0.25


def cautions(results: Results, headlines: Iterable[Headline]) -> list[str]:
    """
    Return one sentence for each thing that makes the figures less than they seem.

    These are limits on samples, few epochs, an accuracy near chance, few test samples, one seed,
    and the choice of the winner on the test data; then the warnings of the benchmarks.

    :param results: the results on the page
    :param headlines: the winners that it shows
    """
    shown = list(headlines)
    found = []
    for suite in results.suites:
        records = [record for record in results.records if record.suite == suite]
        own = [each for each in shown if each.suite == suite]
        sentences = [
            *(sentence for record in records for sentence in _about_record(record)),
            *_near_chance(results, records),
            *_one_seed(own),
            *_chosen_on_test_data(own),
            *(warning for record in records for warning in record.warnings),
        ]
        prefix = f"{suite}: " if len(results.suites) > 1 else ""
        found += [f"{prefix}{sentence}" for sentence in sentences]
    return list(dict.fromkeys(found))


def _about_record(record: BenchRecord) -> Iterator[str]:
    yield from _limits(record)
    if record.epochs < record.suite_epochs:
        epochs = "1 epoch" if record.epochs == 1 else f"{record.epochs} epochs"
        yield f"Networks were trained for {epochs}; the suite asks for {record.suite_epochs}."
    test = {"in-domain": record.in_domain_test, **_ood_sets(record)}
    few = [f"{n} {each.samples}" for n, each in test.items() if each.samples < FEW_SAMPLES]
    if few:
        yield f"Some test sets have fewer than {FEW_SAMPLES:,} samples: {', '.join(few)}."


def _limits(record: BenchRecord) -> Iterator[str]:
    if record.limit is not None:
        yield f"Only {record.limit:,} samples of every set were used, or fewer (--limit)."
        return
    sets = {
        "in-domain training": record.in_domain,
        "in-domain test": record.in_domain_test,
        **{f"training outliers {name}": each for name, each in record.outliers.items()},
        **_ood_sets(record),
    }
    limits = {name: re.search(r"(?:^|, )limit=(\d+)", s.selection) for name, s in sets.items()}
    parts = [f"{name} {int(limit[1]):,}" for name, limit in limits.items() if limit]
    if parts:
        yield f"The suite limits the number of samples of some sets: {', '.join(parts)}."


def _ood_sets(record: BenchRecord) -> dict[str, DataRecord]:
    return {name: each for sets in record.sets.values() for name, each in sets.items()}


def _near_chance(results: Results, records: list[BenchRecord]) -> Iterator[str]:
    classes = max(len(record.in_domain.classes) for record in records)
    if classes < 2:
        return
    chance = 1 / classes
    rows = results.summary[
        results.summary["suite"].eq(records[0].suite)
        & results.summary["task"].eq("classification")
        & results.summary["metric"].eq("accuracy")
        & (results.summary["mean"] < chance + NEAR_CHANCE * (1 - chance))
    ]
    if len(rows):
        low = [
            f"{row['method']} on {row['backbone']} {_percent(row['mean'])}"
            for row in rows.to_dict("records")
        ]
        yield (
            f"The accuracy of some networks is near chance ({_percent(chance)} for {classes} "
            f"classes), less than a quarter of the way to perfect: {', '.join(low)}."
        )


def _one_seed(headlines: list[Headline]) -> Iterator[str]:
    if headlines and max(each.winner.n for each in headlines) == 1:
        yield "One seed says nothing about the spread: small differences may be chance."


def _chosen_on_test_data(headlines: list[Headline]) -> Iterator[str]:
    pairs = [f"{each.pairs:,} ({each.group})" for each in headlines if each.pairs > 1]
    if pairs:
        yield (
            f"The winner is the best of {' and of '.join(pairs)} pairs of method and detector on "
            "the test data itself: on other data, expect less."
        )


def _percent(fraction: float) -> str:
    return f"{100 * fraction:.1f} %"
