"""What the fields of a recipe do: weight decay, the lowest rate, augmentation of outliers."""

import os
import signal
from pathlib import Path

import pytest
import torch
from tiny_runs import CallAtStep, digits, points, weight_hashes
from torch import nn

from dpn_plugin._distributed import Processes
from dpn_plugin._signals import Stopped
from dpn_plugin.backbones import create_backbone
from dpn_plugin.data import Augmentation, DatasetCache, Transform
from dpn_plugin.runs import Checkpoints, Recipe, TrainConfig, method_of
from dpn_plugin.training import load_training_data, train
from dpn_plugin.training.optimization import create_optimizer, create_schedule, set_rate
from dpn_plugin.training.task import create_task
from dpn_plugin.training.trainer import Trainer

SHIFTED = {"outlier_augmentation": {"shift": 0.3, "fill": "reflect"}}
SMALL = {"epochs": 2, "batch_size": 32, "outlier_batch_size": 16}


def digits_with(method: str = "dpn-minus", **changes: object) -> TrainConfig:
    return digits(method, recipe=Recipe.named("small", **{**SMALL, **changes}))


def trainer_of(config: TrainConfig, folder: Path, network: int = 0) -> Trainer:
    method = method_of(config)
    data = load_training_data(config, method, DatasetCache(folder, folder))
    loss = nn.CrossEntropyLoss(reduction="none")
    return Trainer(
        create_backbone("test_resnet", 7, in_chans=1, image_size=8),
        (loss, loss),
        data.for_network(method.networks[network]),
        Transform((0.0,), (1.0,), (8, 8)),
        config.recipe,
        Checkpoints(folder, owner=""),
        Processes(torch.device("cpu")),
        seed=3,
    )


def weights_after_two_steps(recipe: Recipe, keras_l2: float) -> dict[str, torch.Tensor]:
    """Return the weights of a small network, trained with Keras' penalty on its kernels."""
    torch.manual_seed(0)
    backbone = create_backbone("test_resnet", 3, image_size=32)
    x, y = torch.randn(4, 3, 32, 32), torch.tensor([0, 1, 2, 0])
    loss = nn.CrossEntropyLoss(reduction="none")
    task = create_task(backbone, loss, recipe, Processes(torch.device("cpu")))
    optimizer = create_optimizer(task, recipe)
    kernels = [each for each in backbone.parameters() if each.ndim > 1]
    for _ in range(2):
        optimizer.zero_grad()
        (task(x, y)["loss"] + keras_l2 * sum(w.square().sum() for w in kernels)).backward()
        optimizer.step()
    return backbone.state_dict()


@pytest.mark.parametrize("name", ["c10", "c100"])
def test_weight_decay_is_twice_the_factor_of_keras_l2(name: str) -> None:
    plain, decayed = Recipe.named(name, weight_decay=0.0), Recipe.named(name, weight_decay=0.2)
    keras, ours = weights_after_two_steps(plain, 0.1), weights_after_two_steps(decayed, 0.0)
    torch.testing.assert_close(ours, keras, rtol=1e-3, atol=1e-5)
    other = weights_after_two_steps(plain, 0.2)
    with pytest.raises(AssertionError):
        torch.testing.assert_close(ours, other, rtol=1e-3, atol=1e-5)


@pytest.mark.parametrize(("epoch", "rate"), [(0, 0.1), (20, 0.05), (199, 0.1 / 2**9), (599, 5e-7)])
def test_a_step_schedule_ends_at_its_lowest_rate(epoch: int, rate: float) -> None:
    recipe = Recipe.named("c10", epochs=600)
    optimizer = torch.optim.SGD([nn.Parameter(torch.zeros(1))], lr=recipe.lr)
    schedule = create_schedule(optimizer, recipe, steps=5)
    set_rate(optimizer, schedule, recipe, epoch, step=5 * epoch)
    assert optimizer.param_groups[0]["lr"] == pytest.approx(rate)


@pytest.mark.parametrize(("method", "network"), [("dpn-minus", 0), ("binary", 1)])
def test_outliers_have_their_own_augmentation(method: str, network: int, tmp_path: Path) -> None:
    own = {"shift": 0.0, "rotation": 0.0, "flip": True}
    config = digits_with(method, augmentation=own, outlier_augmentation={"shift": 0.4})
    trainer = trainer_of(config, tmp_path, network)
    inputs, _ = next(trainer.batches.rest_of(epoch=0, step=0))
    generator = torch.Generator().manual_seed(0)
    found = trainer._augment(inputs, 0, generator)
    generator.manual_seed(0)
    expected = [
        Augmentation(flip=True)(inputs[:32], generator),
        Augmentation(shift=0.4)(inputs[32:], generator),
    ]
    assert torch.equal(found, torch.cat(expected))
    assert not torch.equal(found[32:], inputs[32:])


def test_without_their_own_outliers_are_augmented_like_in_domain_images(tmp_path: Path) -> None:
    trainer = trainer_of(digits_with(augmentation={"shift": 0.4}), tmp_path)
    inputs, _ = next(trainer.batches.rest_of(epoch=0, step=0))
    found = trainer._augment(inputs, 0, torch.Generator().manual_seed(0))
    expected = trainer.recipe.augmentation(inputs, torch.Generator().manual_seed(0))
    assert torch.equal(found, expected)


def test_fine_tuning_changes_the_augmentation_of_in_domain_images_only(tmp_path: Path) -> None:
    config = digits_with(
        augmentation={"shift": 0.4, "rotation": 0.0},
        outlier_augmentation={"shift": 0.4},
        fine_tune={"epochs": 1, "lr": 1e-5},
    )
    trainer = trainer_of(config, tmp_path)
    inputs, _ = next(trainer.batches.rest_of(epoch=2, step=10))
    generator = torch.Generator().manual_seed(0)
    found = trainer._augment(inputs, 2, generator)
    assert torch.equal(found[:32], inputs[:32])
    generator.manual_seed(0)
    assert torch.equal(found[32:], Augmentation(shift=0.4)(inputs[32:], generator))


def test_a_method_without_outliers_ignores_their_augmentation(tmp_path: Path) -> None:
    train(digits_with("baseline"), tmp_path / "plain", device="cpu")
    train(digits_with("baseline", **SHIFTED), tmp_path / "other", device="cpu")
    assert weight_hashes(tmp_path / "plain") == weight_hashes(tmp_path / "other")


def test_outlier_augmentation_is_the_same_after_a_stop(tmp_path: Path) -> None:
    config = digits_with(**SHIFTED)

    def send_interrupt() -> None:
        os.kill(os.getpid(), signal.SIGINT)

    train(config, tmp_path / "whole", device="cpu")
    with pytest.raises(Stopped, match="after step 3 of 10"):
        train(config, tmp_path / "stopped", device="cpu", monitor=CallAtStep(3, send_interrupt))
    train(config, tmp_path / "stopped", device="cpu")
    train(digits_with(), tmp_path / "without", device="cpu")
    assert weight_hashes(tmp_path / "stopped") == weight_hashes(tmp_path / "whole")
    assert weight_hashes(tmp_path / "without") != weight_hashes(tmp_path / "whole")


def test_points_are_not_augmented(tmp_path: Path) -> None:
    train(points(), tmp_path / "plain", device="cpu")
    train(points(**SHIFTED), tmp_path / "other", device="cpu")
    assert weight_hashes(tmp_path / "plain") == weight_hashes(tmp_path / "other")
