"""Thresholds keep their promise on real digits, for every detector that applies to the network."""

from pathlib import Path

import numpy as np
import pytest
import torch
from scipy.stats import binom
from tiny_runs import digits

from dpn_plugin._distributed import Processes
from dpn_plugin.data import DatasetCache, fingerprint
from dpn_plugin.detectors import NotApplicable
from dpn_plugin.evaluation.scorers import create_scorer
from dpn_plugin.metrics import (
    FisherCombination,
    conformal_p_values,
    conformal_p_values_by_class,
    conformal_threshold,
)
from dpn_plugin.outputs import OutputStore, RunOutputs
from dpn_plugin.plugins import registry
from dpn_plugin.runs import Recipe, method_of
from dpn_plugin.training import load_in_domain, load_training_data, train

pytestmark = pytest.mark.slow

SPLITS, CALIBRATION, ALPHAS = 200, 250, (0.01, 0.05, 0.1)
#: of logits, features, several layers, gradients, inputs and a fit to held-out data
FAMILIES = (
    "dpn-maxp", "dpn-gaussian-kl", "energy-based", "knn", "mahalanobis", "vim", "gram",
    "multi-mahalanobis", "grad-norm", "odin", "open-max", "react",
)  # fmt: skip


@pytest.fixture(scope="module")
def pool(tmp_path_factory: pytest.TempPathFactory) -> tuple[dict[str, torch.Tensor], torch.Tensor]:
    """Scores of 631 digits that nothing was fitted to, by detector, and their predicted classes."""
    folder = tmp_path_factory.mktemp("validity")
    recipe = Recipe.named("small", epochs=2, batch_size=32, outlier_batch_size=16)
    source = {"source": "sklearn:digits", "classes": {"first": 7}}
    config = digits("dpn-minus", in_domain=source, hold_back=0.5, recipe=recipe, stem="small")
    datasets = DatasetCache(folder, folder)
    data = load_training_data(config, method_of(config), datasets)
    run = train(config, folder / "run", device="cpu", data=data)
    _, unseen = load_in_domain(config, datasets)
    assert unseen is not None
    samples = {**data.parts, "in_domain_test": unseen}
    hashes = {name: fingerprint(each) for name, each in samples.items()}
    store = OutputStore(Path(folder / "store"))
    outputs = RunOutputs(run, store, samples, hashes, Processes.join("cpu"))
    outputs.collect(samples)
    found = {}
    for name in registry.list_detectors():
        try:
            scorer = create_scorer(outputs, name, tuned=False)
        except NotApplicable:
            continue
        scorer.fit()
        found[name] = scorer.score("in_domain_test").double()
    logits = torch.from_numpy(np.array(outputs.arrays("in_domain_test")["logits"]))
    return found, logits.argmax(dim=1)


def _splits(size: int):
    """The positions of calibration and test samples, 200 times."""
    generator = torch.Generator().manual_seed(0)
    for _ in range(SPLITS):
        order = torch.randperm(size, generator=generator)
        yield order[:CALIBRATION], order[CALIBRATION:]


def _check_mean(rejected: list[float], expected: float, exact: bool, what: str) -> None:
    error = 4 * np.std(rejected) / np.sqrt(len(rejected))
    assert np.mean(rejected) <= expected + error, what
    assert not exact or np.mean(rejected) >= expected - error, what


def test_every_detector_rejects_the_promised_share_of_in_domain_samples(pool) -> None:
    scores, _ = pool
    assert len(scores) > 30
    assert scores.keys() >= set(FAMILIES)
    for name, own in scores.items():
        found = [conformal_p_values(own[a], own[b]) for a, b in _splits(len(own))]
        for alpha in ALPHAS:
            rejected = [float((p <= alpha).double().mean()) for p in found]
            # of 250 samples, the 2nd, 12th and 25th largest are the thresholds
            expected = np.floor(alpha * (CALIBRATION + 1)) / (CALIBRATION + 1)
            no_ties = len(own.unique()) == len(own)
            _check_mean(rejected, expected, no_ties, f"{name} at {alpha}")


@pytest.mark.parametrize("name", FAMILIES[::3])
def test_within_each_predicted_class_the_promise_holds_too(name: str, pool) -> None:
    scores, classes = pool[0][name], pool[1]
    rejected: dict[tuple[int, float], list[float]] = {}
    of_all: dict[int, list[float]] = {}
    for a, b in _splits(len(scores)):
        p = conformal_p_values_by_class(scores[a], classes[a], scores[b], classes[b])
        p_of_all = conformal_p_values(scores[a], scores[b])
        for label in range(7):
            chosen = classes[b] == label
            of_all.setdefault(label, []).append(float((p_of_all[chosen] <= 0.1).double().mean()))
            for alpha in (0.05, 0.1):
                share = (p[chosen] <= alpha).double().mean()
                rejected.setdefault((label, alpha), []).append(float(share))
    for (label, alpha), each in rejected.items():
        _check_mean(each, alpha, False, f"{name}, class {label} at {alpha}")
    # one threshold for all classes does not do that
    assert max(np.mean(each) for each in of_all.values()) > 0.13


@pytest.mark.parametrize("name", FAMILIES[1::3])
@pytest.mark.parametrize(("alpha", "n"), [(0.05, 100), (0.1, 100), (0.01, 300)])
def test_the_confident_threshold_fails_for_at_most_5_percent_of_draws(
    name: str, alpha: float, n: int, pool
) -> None:
    scores = pool[0][name]
    generator = torch.Generator().manual_seed(1)
    confident = average = 0
    for _ in range(SPLITS):
        # the digits are the population, whose rejected share is known exactly
        drawn = scores[torch.randint(len(scores), (n,), generator=generator)]
        threshold = conformal_threshold(drawn, alpha, confidence=0.95)
        confident += bool((scores > threshold).double().mean() > alpha)
        threshold = conformal_threshold(drawn, alpha)
        average += bool((scores > threshold).double().mean() > alpha)
    assert confident <= binom.ppf(0.999, SPLITS, 0.05)
    assert average > binom.ppf(0.999, SPLITS, 0.05)  # the threshold without confidence does not


def test_a_combination_of_dependent_detectors_keeps_the_promise(pool) -> None:
    members = torch.stack([pool[0][name] for name in ("dpn-mi", "dpn-maxp", "knn")], dim=1)
    found = []
    for a, b in _splits(len(members)):
        combined = FisherCombination(members[a])
        found.append(conformal_p_values(combined.calibration, combined.scores(members[b])))
    for alpha in ALPHAS:
        rejected = [float((p <= alpha).double().mean()) for p in found]
        _check_mean(rejected, alpha, False, f"fisher at {alpha}")
        assert np.mean(rejected) > 0.5 * alpha
