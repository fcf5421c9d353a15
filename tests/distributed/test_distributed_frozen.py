"""Heads on frozen features: results on a Ray cluster are the same as local ones."""

from pathlib import Path

import pytest
from tiny_bench import DIGITS, FROZEN, bench, file_hashes, suite_file, write_base_weights

from dpn_plugin.bench import RayExecutor


@pytest.fixture(scope="module")
def frozen_suite(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return suite_file(tmp_path_factory.mktemp("frozen"), DIGITS, FROZEN)


@pytest.fixture(scope="module")
def weights(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_base_weights(tmp_path_factory.mktemp("weights"))


@pytest.fixture(scope="module")
def expected(frozen_suite: Path, weights: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    out = tmp_path_factory.mktemp("local-frozen")
    bench(frozen_suite, out, weights=weights)
    return out


@pytest.mark.parametrize("scratch", [False, True])
def test_frozen_runs_on_ray_are_those_of_a_local_benchmark(
    frozen_suite: Path, weights: Path, expected: Path, address: str, tmp_path: Path, scratch: bool
) -> None:
    executor = RayExecutor(address, scratch=scratch)
    bench(frozen_suite, tmp_path, weights=weights, executor=executor)
    assert file_hashes(tmp_path) == file_hashes(expected)
    assert not list((tmp_path / "store").glob(".*"))
