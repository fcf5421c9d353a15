"""The calibration split: it neither trains, nor selects, and the record names it."""

from pathlib import Path

import numpy as np
import pytest
import torch
from pydantic import ValidationError
from tiny_runs import digits, points, weight_hashes

from dpn_plugin.data import DatasetCache
from dpn_plugin.errors import UserError
from dpn_plugin.runs import Recipe, TrainConfig, method_of, read_run_record
from dpn_plugin.training import TrainingData, load_training_data, train

SOURCE = {"source": "synthetic:gaussians", "split": "calibration"}


def _with_share(share: float, **changes: int) -> TrainConfig:
    recipe = Recipe.named("synthetic", epochs=4, calibration=share, hold_out=0.1)
    return points(recipe=recipe, **changes)


def _load(config: TrainConfig) -> TrainingData:
    return load_training_data(config, method_of(config), DatasetCache(Path("data"), Path()))


def test_a_share_is_set_aside_before_samples_are_held_out() -> None:
    data = _load(_with_share(0.2))
    assert {name: len(part) for name, part in data.parts.items()} == {
        "train": 108,
        "held_out": 12,
        "outliers": 72,
        "held_out_outliers": 8,
        "calibration": 30,
    }
    rows = torch.cat([data.train.inputs, data.held_out.inputs, data.calibration.inputs])
    assert len(rows.unique(dim=0)) == 150
    assert "calibration" not in _load(points()).parts


def test_the_share_differs_between_seeds() -> None:
    first, second = (_load(_with_share(0.2, seed=seed)).calibration for seed in (0, 1))
    assert not torch.equal(first.inputs, second.inputs)


def test_a_source_of_its_own_changes_no_weight_and_is_recorded(tmp_path: Path) -> None:
    without, other = points("oe"), points("oe").model_dump() | {"calibration": SOURCE}
    train(without, tmp_path / "without", device="cpu")
    train(TrainConfig.model_validate(other), tmp_path / "with", device="cpu")
    assert weight_hashes(tmp_path / "without") == weight_hashes(tmp_path / "with")
    record = read_run_record(tmp_path / "with")
    assert record.samples["calibration"] == 600
    assert record.data.keys() - read_run_record(tmp_path / "without").data.keys() == {"calibration"}


def test_a_share_and_a_source_exclude_each_other() -> None:
    config = _with_share(0.1).model_dump() | {"calibration": SOURCE}
    with pytest.raises(ValidationError, match="a share of the training data or a source"):
        TrainConfig.model_validate(config)


def _digits_with(calibration: dict | str) -> TrainConfig:
    return TrainConfig.model_validate(digits().model_dump() | {"calibration": calibration})


def test_calibration_data_of_other_classes_is_refused() -> None:
    with pytest.raises(UserError, match="calibration has other classes than in_domain: 3 and 7"):
        _load(_digits_with("sklearn:digits?classes=0-2"))


def test_calibration_data_that_is_trained_on_is_refused(tmp_path: Path) -> None:
    with pytest.raises(UserError, match="'calibration' and 'in_domain' are the same part"):
        _load(_digits_with("sklearn:digits?classes=0-6"))
    images = DatasetCache(tmp_path, tmp_path).load(digits().in_domain, in_domain=True)
    np.savez(tmp_path / "copy.npz", images=images.inputs[:, 0].numpy(), labels=images.labels)
    with pytest.raises(
        UserError, match="180 of the 180 images of 'calibration' are also in 'in_do"
    ):
        _load(_digits_with(f"npz:{tmp_path / 'copy.npz'}"))
