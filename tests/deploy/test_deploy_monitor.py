"""A monitor keeps its promise about false alarms, and finds a change soon."""

from pathlib import Path

import numpy as np
import pytest
import torch
from bundles import bundle_folder, tensors

from dpn_plugin.deploy import StreamMonitor, load_bundle, plot_evidence
from dpn_plugin.errors import UserError
from dpn_plugin.metrics import conformal_p_values

pytest.importorskip("mapie")
STREAMS, CALIBRATION = 100, 200


def streams(seed: int):
    """Yield calibration scores and a generator for each of many streams."""
    for index in range(STREAMS):
        rng = np.random.default_rng([seed, index])
        yield index, torch.from_numpy(rng.normal(size=CALIBRATION)), rng


def test_false_alarms_are_as_rare_as_promised() -> None:
    alarms = 0
    for index, calibration, rng in streams(0):
        monitor = StreamMonitor(calibration, 0.05, seed=index)
        alarms += monitor.update(rng.normal(size=1000)).alarm is not None
    assert alarms <= 11  # a binomial of 100 and 0.05 exceeds it with probability 0.4 %


def test_p_values_of_a_fixed_calibration_set_would_raise_false_alarms() -> None:
    """The reason why scores of the stream join the calibration scores."""
    alarms = 0
    for index, calibration, rng in streams(1):
        scores = torch.from_numpy(rng.normal(size=2000))
        jumper = StreamMonitor(calibration, 0.05, seed=index)._test
        p_values = conformal_p_values(calibration, scores).tolist()
        alarms += max(map(jumper.update_simple_jumper_martingale, p_values)) >= 20
    assert alarms > 11


def test_a_change_is_found_soon() -> None:
    delays = []
    for index, calibration, rng in streams(2):
        monitor = StreamMonitor(calibration, 0.01, seed=index)
        monitor.update(rng.normal(size=500))
        monitor.update(rng.normal(1.5, size=300))
        if monitor.alarm is not None and monitor.alarm >= 500:
            delays.append(monitor.alarm - 500)
    assert len(delays) >= 95
    assert np.median(delays) < 45


def test_equal_scores_are_ranked_at_random() -> None:
    monitor = StreamMonitor(torch.zeros(100), 0.01)
    assert monitor.update(torch.zeros(2000)).alarm is None


def test_the_jumper_is_that_of_its_definition() -> None:
    """An independent reference: three accounts bet 1 + e (p - 1/2), and mix by 1 % a step."""
    calibration = torch.arange(50.0)
    monitor = StreamMonitor(calibration, 0.01, seed=3)
    monitor.update([60.0] * 5 + [10.5] * 5)
    rng, known = np.random.default_rng(3), calibration.tolist()
    accounts, expected = np.full(3, 1 / 3), []
    for score in [60.0] * 5 + [10.5] * 5:
        larger, equal = sum(k > score for k in known), sum(k == score for k in known)
        p = (larger + rng.uniform() * (equal + 1)) / (len(known) + 1)
        known.append(score)
        accounts = 0.99 * accounts + 0.01 * accounts.sum() / 3
        accounts = accounts * (1 + np.array([-1, 0, 1]) * (p - 0.5))
        expected.append(accounts.sum())
    np.testing.assert_allclose(monitor.history, expected)


def test_evidence_stays_finite_after_an_alarm() -> None:
    monitor = StreamMonitor(torch.zeros(10_000), 0.01)
    found = monitor.update(np.arange(3000.0) + 1)
    assert found.alarm is not None
    assert found.alarm < 20
    assert found.value == 1e300


def test_a_bundle_watches_images(tmp_path: Path) -> None:
    bundle = load_bundle(bundle_folder(), "cpu")
    monitor = bundle.monitor("mahalanobis", false_alarm=0.01)
    noise = torch.randint(0, 256, (60, 1, 8, 8), generator=torch.Generator().manual_seed(0))
    assert monitor(tensors(0, 1, 2)).images == 3
    assert monitor(noise.to(torch.uint8)).alarm is not None
    plot_evidence(monitor, tmp_path / "evidence.svg")
    assert "<svg" in (tmp_path / "evidence.svg").read_text()
    with pytest.raises(UserError, match=r"ends in \.png"):
        plot_evidence(monitor, tmp_path / "evidence.txt")
    with pytest.raises(UserError, match="Did you mean 'mahalanobis'"):
        bundle.monitor("mahalanobi")
    with pytest.raises(UserError, match="false_alarm must be between 0 and 1"):
        bundle.monitor(false_alarm=1.5)
