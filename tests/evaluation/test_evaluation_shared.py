"""An evaluation in which detectors share passes has the figures of each detector alone."""

from pathlib import Path

import pytest
import torch
from tiny_runs import digits

from dpn_plugin._distributed import Processes
from dpn_plugin.data import DatasetCache, fingerprint
from dpn_plugin.errors import UserError
from dpn_plugin.evaluation import Evaluation, WarningCollector
from dpn_plugin.evaluation.rows import detector_rows
from dpn_plugin.evaluation.scorers import create_scorer
from dpn_plugin.outputs import OutputStore, RunOutputs
from dpn_plugin.runs import method_of
from dpn_plugin.training import load_in_domain, load_training_data, train

TOGETHER = ("gram", "nacue", "multi-mahalanobis", "mahalanobis-odin", "odin", "grad-norm")


@pytest.fixture(scope="module")
def outputs(tmp_path_factory: pytest.TempPathFactory) -> RunOutputs:
    folder = tmp_path_factory.mktemp("shared")
    config = digits("baseline", hold_back=0.3, stem="small")
    datasets = DatasetCache(folder, folder)
    data = load_training_data(config, method_of(config), datasets)
    run = train(config, folder / "run", device="cpu", data=data)
    _, unseen = load_in_domain(config, datasets)
    samples = {**data.parts, "in_domain_test": unseen, "far.held": data.held_out}
    hashes = {name: fingerprint(each) for name, each in samples.items()}
    store = OutputStore(Path(folder / "store"))
    found = RunOutputs(run, store, samples, hashes, Processes.join("cpu"))
    found.collect(samples)
    return found


def evaluated(outputs: RunOutputs, folder: Path, *detectors: str) -> tuple[Evaluation, list[str]]:
    warnings = WarningCollector(lambda message: None)
    evaluation = Evaluation(
        outputs, detectors, folder, method="baseline", tune=False, warnings=warnings
    )
    evaluation.required_sets()
    announced: list[str] = []
    evaluation.record = evaluation.complete(announced.append)
    return evaluation, announced


def test_figures_are_those_of_each_detector_alone(outputs: RunOutputs, tmp_path: Path) -> None:
    evaluation, announced = evaluated(outputs, tmp_path, "energy-based", *TOGETHER)
    assert announced == [", ".join(TOGETHER), "energy-based", *TOGETHER]
    for name in ("energy-based", *TOGETHER):
        scorer = create_scorer(outputs, name, tuned=False)
        scorer.fit()
        inside, outside = scorer.score("in_domain_test"), {"far.held": scorer.score("far.held")}
        expected = detector_rows(name, inside, outside, outputs.arrays("in_domain_test"))
        found = evaluation.record.detectors[name]
        assert found.reason is None
        assert found.rows == expected
        assert found.seconds > 0


def test_a_record_is_kept_if_another_detector_is_added(outputs: RunOutputs, tmp_path: Path) -> None:
    first, _ = evaluated(outputs, tmp_path, "odin")
    second, announced = evaluated(outputs, tmp_path, "odin", "nacue")
    assert announced == ["nacue", "nacue"]
    assert second.record.detectors["odin"] == first.record.detectors["odin"]


def test_one_that_fails_with_the_others_is_tried_alone(
    outputs: RunOutputs, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from dpn_plugin.detectors.stored import together

    score_batch, calls = together.score_batch, []

    def no_memory(detector, x, shared):
        if type(detector).__name__ == "ODIN":
            calls.append(x)
            if len(calls) == 1:
                raise torch.OutOfMemoryError("too many at a time")
        return score_batch(detector, x, shared)

    monkeypatch.setattr(together, "score_batch", no_memory)
    evaluation, _ = evaluated(outputs, tmp_path, "odin", "nacue")
    assert {n: each.reason for n, each in evaluation.record.detectors.items()} == {
        "odin": None,
        "nacue": None,
    }


def test_samples_that_cannot_be_read_are_the_reason_of_all(
    outputs: RunOutputs, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def vanished(*names, **options):
        raise UserError("cat.jpg is missing.")

    monkeypatch.setattr(outputs, "batches", lambda *names: vanished)
    evaluation, _ = evaluated(outputs, tmp_path, "odin", "nacue", "energy-based")
    reasons = {name: each.reason for name, each in evaluation.record.detectors.items()}
    assert reasons["odin"] == reasons["nacue"] == "cat.jpg is missing."
    assert reasons["energy-based"] is None
