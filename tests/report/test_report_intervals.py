"""The interval of a headline: from the stored scores of all seeds, or from numbers of samples."""

import shutil
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
import torch
from sample_bench import DETECTORS, SampleBench

from dpn_plugin.metrics import auroc_interval, auroc_interval_from_counts
from dpn_plugin.outputs import OutputStore
from dpn_plugin.report.intervals import HeadlineInterval, headline_interval
from dpn_plugin.report.ranking import Headline, headlines
from dpn_plugin.report.results import Scope, load_results
from dpn_plugin.report.stored_runs import find_all_runs


def intervals(folder: Path) -> dict[str, tuple[Headline, HeadlineInterval | None]]:
    results = load_results([folder])
    return {each.group: (each, headline_interval(results, each)) for each in headlines(results)}


def test_stored_scores_of_all_seeds_give_delongs_interval(bench: Path) -> None:
    store = OutputStore(bench / "store")
    for group, (headline, found) in intervals(bench).items():
        score, expected = DETECTORS[headline.winner.detector], []
        scope = Scope("digits", "test_resnet")
        for run in find_all_runs([bench], scope, [headline.winner.method]):
            keys = run.record.outputs
            own = [keys.in_domain_test, *getattr(keys, group).values()]
            logits = [torch.tensor(np.array(store.open(key).arrays["logits"])) for key in own]
            expected.append(auroc_interval(*(score(each.double()) for each in logits)))
        assert len(expected) == 3
        assert found.method == "DeLong"
        assert found.low == pytest.approx(np.mean([each.low for each in expected]))
        assert found.high == pytest.approx(np.mean([each.high for each in expected]))
        assert found.low < headline.winner.mean < found.high


def remove_store(folder: Path) -> None:
    shutil.rmtree(folder / "store")


def remove_seed(folder: Path) -> None:
    shutil.rmtree(folder / "runs/test_resnet/dpn-minus/seed-1")


def rename_detectors(folder: Path) -> None:
    rows = pd.read_csv(folder / "results.csv")
    renamed = rows.assign(detector=rows["detector"].str.replace("dpn", "other"))
    renamed.to_csv(folder / "results.csv", index=False)


def lower_values(folder: Path) -> None:
    rows = pd.read_csv(folder / "results.csv")
    rows.assign(value=0.9 * rows["value"]).to_csv(folder / "results.csv", index=False)


@pytest.mark.parametrize("change", [remove_store, remove_seed, rename_detectors, lower_values])
def test_without_the_scores_of_a_figure_the_numbers_of_samples_give_an_interval(
    change: Callable[[Path], None], bench: Path, tmp_path: Path
) -> None:
    folder = shutil.copytree(bench, tmp_path / "bench")
    change(folder)
    headline, found = intervals(folder)["far"]
    expected = auroc_interval_from_counts(headline.winner.mean, 240, 240)
    assert found.method == "Hanley-McNeil"
    assert (found.low, found.high) == pytest.approx((expected.low, expected.high))


def test_without_samples_there_is_no_interval(tmp_path: Path) -> None:
    folder = SampleBench(seeds=(0,)).write(tmp_path)
    remove_store(folder)
    results = replace(load_results([folder]), records=(SampleBench(samples=0).record(),))
    assert [headline_interval(results, each) for each in headlines(results)] == [None, None]
