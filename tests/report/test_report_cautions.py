"""What the page says before figures are quoted: one sentence with its numbers for each."""

from pathlib import Path

import pandas as pd
import pytest
from sample_bench import SampleBench

from dpn_plugin.metrics import RESULT_COLUMNS, over_seeds
from dpn_plugin.report.cautions import cautions
from dpn_plugin.report.ranking import headlines
from dpn_plugin.report.results import Results

LARGE = {"methods": ("oe",), "near": (), "far": ("noise",), "samples": 5000}


def results(
    *samples: SampleBench, seeds: int = 3, accuracy: float = 0.9, detectors: int = 1
) -> Results:
    """Return results of the benchmarks' methods on their far sets, without any files."""
    rows = []
    for sample in samples:
        for method in sample.methods:
            for seed in range(seeds):
                identity = sample.suite, sample.backbone, method, seed
                rows.append((*identity, "classification", "", "", "accuracy", accuracy))
                for index in range(detectors):
                    rows.append((*identity, "ood", f"d{index}", "far", "auroc", 0.9 + index / 50))
    summary = over_seeds(pd.DataFrame(rows, columns=RESULT_COLUMNS))
    records = tuple(sample.record() for sample in samples)
    return Results(tuple(Path(s.suite) for s in samples), records, summary, pd.DataFrame())


def sentences(found: Results) -> list[str]:
    return cautions(found, headlines(found))


def test_a_full_benchmark_with_one_pair_needs_no_caution() -> None:
    assert sentences(results(SampleBench(**LARGE))) == []


@pytest.mark.parametrize(
    ("changes", "options", "expected"),
    [
        ({"limit": 3000}, {}, "Only 3,000 samples of every set were used, or fewer (--limit)."),
        (
            {"selection": "classes=a,b, limit=5000, small=True"},
            {},
            "The suite limits the number of samples of some sets: noise 5,000.",
        ),
        ({"epochs": 1}, {}, "Networks were trained for 1 epoch; the suite asks for 8."),
        (
            {"samples": 300},
            {},
            "Some test sets have fewer than 1,000 samples: in-domain 300, noise 300.",
        ),
        (
            {"classes": 10},
            {"accuracy": 0.12},
            "The accuracy of some networks is near chance (10.0 % for 10 classes), less than a "
            "quarter of the way to perfect: oe on test_resnet 12.0 %.",
        ),
        (
            {},
            {"seeds": 1},
            "One seed says nothing about the spread: small differences may be chance.",
        ),
        (
            {"methods": ("oe", "edl")},
            {"detectors": 4},
            "The winner is the best of 8 (far) pairs of method and detector on the test data "
            "itself: on other data, expect less.",
        ),
        ({"warnings": ("Classes overlap.",)}, {}, "Classes overlap."),
    ],
    ids=["limit", "selection", "epochs", "samples", "chance", "seed", "best of", "warning"],
)
def test_each_weakness_is_one_sentence_with_its_numbers(
    changes: dict, options: dict, expected: str
) -> None:
    assert sentences(results(SampleBench(**LARGE | changes), **options)) == [expected]


@pytest.mark.parametrize(
    ("classes", "accuracy", "near"),
    [(2, 0.62, True), (2, 0.63, False), (10, 0.32, True), (10, 0.33, False)],
)
def test_near_chance_is_less_than_a_quarter_of_the_way_to_perfect(
    classes: int, accuracy: float, near: bool
) -> None:
    found = results(SampleBench(**LARGE, classes=classes), accuracy=accuracy)
    assert any("near chance" in sentence for sentence in sentences(found)) is near


def test_sentences_of_several_suites_name_theirs_and_are_not_repeated() -> None:
    one, other = SampleBench(**LARGE, epochs=1), SampleBench(**LARGE, suite="other")
    more = SampleBench(**LARGE, epochs=1, backbone="resnet18")
    assert sentences(results(one, more, other)) == [
        "digits: Networks were trained for 1 epoch; the suite asks for 8.",
        "digits: The winner is the best of 2 (far) pairs of method and detector on the test data "
        "itself: on other data, expect less.",
    ]
