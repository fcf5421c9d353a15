"""``fit_samples`` bounds the data that detectors are fitted to, and is recorded."""

from pathlib import Path

import pytest
from tiny_bench import DIGITS, FROZEN, bench, results, suite_file, write_base_weights

from dpn_plugin.evaluation import read_evaluation
from dpn_plugin.outputs import FIT_SAMPLES, OutputStore

CHANGES = {"epochs = 2": "epochs = 1", '"dpn-mi"]': '"dpn-mi", "knn"]'}


def fitted_rows(out: Path) -> dict[str, int]:
    """The number of stored rows of every set that detectors are fitted to."""
    entries = [OutputStore(out / "store").open(path.name) for path in (out / "store").iterdir()]
    return {
        each.key.split: len(each.arrays["logits"])
        for each in entries
        if each is not None and each.key.split in ("train", "held_out")
    }


@pytest.mark.parametrize("frozen", [False, True])
def test_detectors_are_fitted_to_so_many_samples(tmp_path: Path, frozen: bool) -> None:
    changes = FROZEN if frozen else CHANGES
    suite = suite_file(tmp_path, DIGITS, {**changes, "seeds = 1": "seeds = 1\nfit_samples = 50"})
    given = {"weights": write_base_weights(tmp_path)} if frozen else {}
    bench(suite, tmp_path / "out", methods=("baseline",), **given)
    record = read_evaluation(tmp_path / "out/runs/test_resnet/baseline/seed-0")
    assert record is not None
    assert record.identity.fit_samples == 50
    assert 45 <= record.samples["train"] <= 50
    counts = {name: record.samples[name] for name in ("train", "held_out")}
    assert fitted_rows(tmp_path / "out") == counts


def test_the_command_line_overrides_the_suite_and_figures_are_computed_again(
    tmp_path: Path,
) -> None:
    suite, out = suite_file(tmp_path, DIGITS, CHANGES), tmp_path / "out"
    tables = []
    for given in (None, 40):
        bench(suite, out, fit_samples=given)
        table = results(out)
        tables.append(table[(table.detector == "knn") & (table.metric == "auroc")].value.tolist())
        record = read_evaluation(out / "runs/test_resnet/baseline/seed-0")
        assert record is not None
        assert record.identity.fit_samples == (given or FIT_SAMPLES)
    assert tables[0] != tables[1]
