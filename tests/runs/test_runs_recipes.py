"""Recipes are data, and the changes that users make are checked."""

import pytest

from dpn_plugin.errors import UserError
from dpn_plugin.runs import LARGEST_IMAGE, Recipe, list_recipes


def test_the_documented_recipes_exist() -> None:
    assert list_recipes() == ["c10", "c100", "small", "synthetic", "tim"]


@pytest.mark.parametrize("name", list_recipes())
def test_every_recipe_is_valid_and_names_an_optimizer_of_timm(name: str) -> None:
    from timm.optim import list_optimizers

    recipe = Recipe.named(name)
    assert recipe.optimizer in list_optimizers()
    assert recipe.total_epochs >= recipe.epochs > 0


def test_a_changed_key_of_a_table_keeps_the_other_keys() -> None:
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
        ("c10", {"augmentation": {"flop": True}}, "augmentation: Unknown .* 'flop'. Did .*'flip'"),
        ("c10", {"image_size": LARGEST_IMAGE + 1}, "image_size: .* less than or equal to 8192"),
        ("c10", {"augmentation": {"shift": 3}}, "shift must be between 0 and 1"),
        ("c10", {"outlier_augmentation": {"shift": 3}}, "shift must be between 0 and 1"),
        ("c10", {"augmentation": {"fill": "wrap"}}, "augmentation.fill: .*'reflect'.*not 'wrap'"),
    ],
)
def test_a_wrong_change_is_refused(name: str, changes: dict, message: str) -> None:
    with pytest.raises(UserError, match=message):
        Recipe.named(name, **changes)


def test_none_keeps_the_value_of_the_recipe() -> None:
    assert Recipe.named("c10", lr=None, epochs=None) == Recipe.named("c10")
