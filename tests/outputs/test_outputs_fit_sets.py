"""Detectors are fitted to a bounded part of the training data, the same one every time."""

import torch

from dpn_plugin.data import Samples
from dpn_plugin.outputs import FitSets


def samples(counts: list[int]) -> Samples:
    labels = torch.repeat_interleave(torch.arange(len(counts)), torch.tensor(counts))
    labels = labels[torch.randperm(len(labels), generator=torch.Generator().manual_seed(1))]
    points = torch.arange(len(labels)).float()[:, None].expand(-1, 2).contiguous()
    return Samples(points, labels, "drawn", tuple(map(str, range(len(counts)))))


def fit_sets(most: int) -> FitSets:
    sets = {"train": samples([600, 300, 97, 3]), "held_out": samples([6, 4]), "test": samples([99])}
    return FitSets.of(sets, {name: name for name in sets}, most)


def test_every_class_keeps_its_share_and_at_least_one_sample() -> None:
    found = fit_sets(100).samples["train"]
    assert torch.bincount(found.labels).tolist() == [60, 30, 9, 1]


def test_the_part_is_the_same_every_time_and_in_order() -> None:
    first, second = (fit_sets(100).samples["train"].all_rows()[:, 0] for _ in range(2))
    assert torch.equal(first, second)
    assert (first.diff() > 0).all()


def test_other_sets_and_smaller_ones_are_whole() -> None:
    found = fit_sets(10)
    assert len(found.samples["held_out"]) == 10
    assert len(found.samples["test"]) == 99
    assert found.fingerprints["held_out"] == "held_out"
    assert found.positions.keys() == {"train"}


def test_the_part_has_a_hash_of_its_own() -> None:
    hashes = {fit_sets(most).fingerprints["train"] for most in (10, 100, 1000)}
    assert len(hashes) == 3
    assert fit_sets(1000).fingerprints["train"] == "train"


def test_features_of_the_whole_set_are_divided_alike() -> None:
    sets, whole = fit_sets(100), samples([600, 300, 97, 3])
    assert torch.equal(sets.part("train", whole).all_rows(), sets.samples["train"].all_rows())
    assert sets.part("test", whole) is whole
