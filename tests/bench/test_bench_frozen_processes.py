"""Processes that torchrun starts share the features of a frozen network."""

from collections.abc import Iterator
from pathlib import Path

import pytest
import torch
from child_processes import run_in_two_processes, run_with_torchrun
from tiny_bench import DIGITS, FROZEN, bench, file_hashes, record, suite_file, write_base_weights

from dpn_plugin.runs import FrozenBase


@pytest.fixture(scope="module")
def weights(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_base_weights(tmp_path_factory.mktemp("weights"))


@pytest.fixture(scope="module")
def suite(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return suite_file(tmp_path_factory.mktemp("suite"), DIGITS, FROZEN)


@pytest.fixture(scope="module")
def one_process(suite: Path, weights: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    out = tmp_path_factory.mktemp("one-process")
    counted_bench(0, suite, weights, out)
    return out


def counted_bench(rank: int, suite: Path, weights: Path, out: Path) -> None:
    """Run a benchmark and write how many batches of images this process has computed."""
    computed: list[int] = []
    original = FrozenBase.features

    def counted(
        self: FrozenBase, images: Iterator[torch.Tensor], device: torch.device
    ) -> Iterator[torch.Tensor]:
        for features in original(self, images, device):
            computed.append(len(features))
            yield features

    FrozenBase.features = counted  # type: ignore[method-assign]
    try:
        bench(suite, out, weights=weights)
    finally:
        FrozenBase.features = original  # type: ignore[method-assign]
    (out / f"computed-{rank}").write_text(f"{len(computed)} {sum(computed)}")


def computed(out: Path, rank: int) -> list[int]:
    return [int(word) for word in (out / f"computed-{rank}").read_text().split()]


def features(out: Path) -> dict[str, str]:
    """The hashes of the files of stored features alone; those of runs have logits, too."""
    found = file_hashes(out)
    own = {name for name in found if name.endswith("features.npy")}
    return {n: found[n] for n in own if n.replace("features", "logits") not in found}


def test_every_process_computes_its_share_of_the_features(
    suite: Path, weights: Path, one_process: Path, tmp_path: Path
) -> None:
    assert run_in_two_processes(counted_bench, suite, weights, tmp_path) == [0, 0]
    assert record(tmp_path)["not_run"] == []
    first, second, all_of_them = (
        computed(tmp_path, 0),
        computed(tmp_path, 1),
        computed(one_process, 0),
    )
    assert [sum(pair) for pair in zip(first, second, strict=True)] == all_of_them
    assert min(first[0], second[0]) > 0
    assert len(features(one_process)) == 7
    assert features(tmp_path) == features(one_process)


def test_torchrun(suite: Path, weights: Path, one_process: Path, tmp_path: Path) -> None:
    done = run_with_torchrun("bench", suite, "--weights", weights, "--out", tmp_path)
    assert done.returncode == 0, done.stderr
    assert record(tmp_path)["not_run"] == []
    assert features(tmp_path) == features(one_process)
