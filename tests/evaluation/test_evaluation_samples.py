"""The choice of the images that a report shows."""

import base64
import io
import time
from types import SimpleNamespace

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from PIL import Image

from dpn_plugin.data import Samples
from dpn_plugin.detectors import create_detector
from dpn_plugin.evaluation.record import Identity
from dpn_plugin.evaluation.samples import SHOWN, choose_samples, lowest, thumbnail
from dpn_plugin.runs.methods import BASELINE, DPN_MINUS

IDENTITY = Identity(outputs={}, versions={})


@given(st.lists(st.sampled_from([-1.5, 0.0, 0.25, 3.0]), max_size=30), st.integers(0, 12))
def test_the_lowest_scores_are_those_of_a_stable_sort(scores, count):
    expected = np.argsort(np.array(scores, dtype=np.float64), kind="stable")[:count]
    assert lowest(torch.tensor(scores, dtype=torch.float64), count).tolist() == expected.tolist()


def decoded(text: str) -> Image.Image:
    return Image.open(io.BytesIO(base64.b64decode(text)))


@pytest.mark.parametrize("channels", [1, 3])
def test_a_small_thumbnail_has_the_pixels_of_the_image(channels):
    image = torch.randint(0, 256, (channels, 8, 8), dtype=torch.uint8)
    pixels = np.asarray(decoded(thumbnail(image)))
    expected = image.permute(1, 2, 0).numpy() if channels == 3 else image[0].numpy()
    assert np.array_equal(pixels, expected)


def test_a_large_image_is_reduced():
    image = torch.full((3, 200, 100), 77, dtype=torch.uint8)
    found = decoded(thumbnail(image))
    assert found.size == (32, 64)
    assert np.unique(np.asarray(found)).tolist() == [77]


class StoredOutputs:
    """Invented logits in place of those of a run, whose networks are not needed here."""

    def __init__(self, samples: int, method=DPN_MINUS, scale: float = 1.0) -> None:
        random = np.random.default_rng(0)
        record = SimpleNamespace(classes=[f"class {i}" for i in range(10)])
        self.run = SimpleNamespace(method=method, record=record)
        self.held_out_names = ["held_out"]
        if method.needs_outliers:
            self.held_out_names.append("held_out_outliers")
        sizes = {"in_domain_test": samples, "far.noise": samples} | dict.fromkeys(
            self.held_out_names, 500
        )
        self._arrays = {
            name: self._invent(random, count, name, scale) for name, count in sizes.items()
        }
        images = torch.arange(samples * 64).reshape(samples, 1, 8, 8).to(torch.uint8)
        self.samples = {
            name: Samples(images, torch.zeros(samples, dtype=torch.int64), name)
            for name in ("in_domain_test", "far.noise")
        }

    def _invent(self, random, count: int, name: str, scale: float) -> dict[str, np.ndarray]:
        logits = random.normal(0, 1, (count, 10)).astype(np.float32) * np.float32(scale)
        labels = random.integers(10, size=count)
        if name in ("far.noise", "held_out_outliers"):
            return {"logits": logits - 1, "labels": np.full(count, -1)}
        logits[np.arange(count), labels] += 3
        return {"logits": logits, "labels": labels}

    def arrays(self, name: str) -> dict[str, np.ndarray]:
        return self._arrays[name]


def test_the_choice_among_100_000_samples_is_quick_and_small():
    outputs = StoredOutputs(100_000)
    start = time.perf_counter()
    record = choose_samples(outputs, ["far.noise"], IDENTITY)
    assert time.perf_counter() - start < 10  # a full evaluation takes longer
    assert record.reason is None
    assert [len(group.samples) for group in record.groups] == [SHOWN] * 3
    assert [group.total for group in record.groups] == [100_000] * 3
    assert len(record.model_dump_json()) < 50_000


def test_the_threshold_accepts_95_per_cent_of_the_held_out_samples():
    outputs = StoredOutputs(1000)
    record = choose_samples(outputs, ["far.noise"], IDENTITY)
    logits = torch.from_numpy(outputs.arrays("held_out")["logits"])
    scores = create_detector(record.detector).predict_logits(logits)
    accepted = int((scores <= record.threshold).sum())
    assert accepted in (475, 476)  # of 500; the threshold is itself one of the scores


def test_without_outliers_the_score_is_that_of_max_p_and_there_are_no_sources():
    record = choose_samples(StoredOutputs(200, BASELINE), ["far.noise"], IDENTITY)
    assert record.detector == "dpn-maxp"
    assert "no held-out outliers" in record.no_sources
    assert all(not each.sources for group in record.groups for each in group.samples)


def test_outputs_that_are_not_finite_are_a_reason_and_no_error():
    record = choose_samples(StoredOutputs(50, scale=float("nan")), ["far.noise"], IDENTITY)
    assert record.groups == []
    assert record.reason
