"""Points in a file are read like those in memory, mapped or not."""

from pathlib import Path

import numpy as np
import pytest
import torch

from dpn_plugin.outputs import mapped
from dpn_plugin.outputs.mapped import MappedPoints


@pytest.fixture(params=["mapped", "read"])
def points(
    request: pytest.FixtureRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> MappedPoints:
    if request.param == "read":
        monkeypatch.setattr(mapped, "LARGEST_MAP", 0)
    values = np.arange(60, dtype=np.float32).reshape(20, 3)
    np.save(tmp_path / "features.npy", values)
    return MappedPoints.of(np.load(tmp_path / "features.npy", mmap_mode="r"))


@pytest.mark.parametrize(
    "positions", [[], [4], [0, 1, 2], [19, 0, 7, 8, 9, 8, 8], list(range(20)), [5, 4, 3]]
)
def test_rows_at_positions(points: MappedPoints, positions: list[int]) -> None:
    whole = torch.arange(60.0).reshape(20, 3)
    chosen = torch.tensor(positions, dtype=torch.int64)
    assert torch.equal(points.rows(chosen), whole[chosen])


def test_rows_of_a_subset_of_a_subset(points: MappedPoints) -> None:
    part = points.subset(torch.arange(0, 20, 2)).subset(torch.tensor([3, 1]))
    assert part.shape == (2, 3)
    assert part.rows(torch.tensor([1, 0]))[:, 0].tolist() == [6.0, 18.0]


def test_a_file_that_became_shorter_is_reported(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(mapped, "LARGEST_MAP", 0)
    np.save(tmp_path / "features.npy", np.zeros((2000, 3), np.float32))
    points = MappedPoints.of(np.load(tmp_path / "features.npy", mmap_mode="r"))
    with (tmp_path / "features.npy").open("r+b") as file:
        file.truncate(1000)
    with pytest.raises(ValueError, match="became shorter"):
        points.rows(torch.tensor([1999]))
