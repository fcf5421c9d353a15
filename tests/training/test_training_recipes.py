"""Recipes are data, and what a user changes in them is checked."""

import pytest

from dpn_plugin.errors import UserError
from dpn_plugin.training import Recipe, list_recipes


def test_the_recipes_are_those_that_are_promised() -> None:
    assert list_recipes() == ["c10", "c100", "small", "synthetic", "tim"]


@pytest.mark.parametrize("name", list_recipes())
def test_every_recipe_is_valid_and_knows_timm(name: str) -> None:
    from timm.optim import list_optimizers

    recipe = Recipe.named(name)
    assert recipe.optimizer in list_optimizers()
    assert recipe.total_epochs >= recipe.epochs > 0


def test_c10_is_the_papers() -> None:
    recipe = Recipe.named("c10")
    assert (recipe.optimizer, recipe.lr, recipe.momentum) == ("sgd", 0.1, 0.9)
    assert (recipe.batch_size, recipe.outlier_batch_size, recipe.epochs) == (64, 32, 200)
    assert (recipe.schedule.decay_epochs, recipe.schedule.decay_rate) == (20, 0.5)
    assert recipe.fine_tune is not None


def test_a_part_of_a_table_leaves_the_rest() -> None:
    recipe = Recipe.named("c10", augmentation={"flip": False}, fine_tune={"epochs": 3})
    assert not recipe.augmentation.flip
    assert recipe.augmentation.rotation == 15
    assert recipe.fine_tune.lr == 1e-4
    assert recipe.total_epochs == 203


@pytest.mark.parametrize(
    ("name", "changes", "message"),
    [
        ("c11", {}, "Unknown recipe 'c11'. Did you mean 'c10"),
        ("c10", {"leaning_rate": 1}, "Unknown training option 'leaning_rate'"),
        ("c10", {"lr": -1}, "lr: .*greater than 0, not -1"),
        ("c10", {"schedule": {"sched": "cosin"}}, "schedule.sched: .*'cosine'.*not 'cosin'"),
        ("c10", {"augmentation": {"flop": True}}, "flop"),
        ("c10", {"augmentation": {"shift": 3}}, "shift must be between 0 and 1"),
    ],
)
def test_a_wrong_change_is_named(name: str, changes: dict, message: str) -> None:
    with pytest.raises(UserError, match=message):
        Recipe.named(name, **changes)
