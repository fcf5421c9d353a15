"""The recipes c10, c100 and tim, figure by figure, against what the authors' code sets."""

import pytest

from dpn_plugin.data import Augmentation
from dpn_plugin.runs import Recipe
from dpn_plugin.runs.config import FineTune

# | figure | C10 | C100 | TIM |, as the authors' code has them
AUTHORS = {
    "batch of in-domain samples": (64, 64, 86),
    "batch of OOD samples": (32, 32, 43),
    "size of images": (32, 32, 64),
    "factor of Keras' l2": (5e-4, 1e-4, 1e-4),
    "optimizer": ("sgd", "adam", "adam"),
    "learning rate": (0.1, 5e-4, 5e-4),
    "epochs": (200, 200, 200),
    "learning rate of the fine-tuning": (1e-4, 5e-6, 5e-6),
    "in-domain rotation, shift, flip": ((15, 0.15, True), (1, 0.1, True), (10, 0.1, True)),
    "OOD rotation, shift, flip": ((15, 0.15, True), (15, 0.15, True), (15, 0.15, True)),
    "fine-tuning rotation, shift, flip": ((0, 0.1, True), (0, 0, True), (0, 0, True)),
    "fill": ("nearest", "reflect", "reflect"),
    "dropout": (None, None, 0.0),  # None: the rates of the network itself
}


def fine_tuning(recipe: Recipe) -> FineTune:
    assert recipe.fine_tune is not None
    return recipe.fine_tune


def outlier_augmentation(recipe: Recipe) -> Augmentation:
    assert recipe.outlier_augmentation is not None
    return recipe.outlier_augmentation


def parts(augmentation: Augmentation) -> tuple[float, float, bool]:
    return augmentation.rotation, augmentation.shift, augmentation.flip


def fills(recipe: Recipe) -> str:
    every = recipe.augmentation, outlier_augmentation(recipe), fine_tuning(recipe).augmentation
    (fill,) = {each.fill for each in every}
    return fill


OURS = {
    "batch of in-domain samples": lambda recipe: recipe.batch_size,
    "batch of OOD samples": lambda recipe: recipe.outlier_batch_size,
    "size of images": lambda recipe: recipe.image_size,
    "factor of Keras' l2": lambda recipe: recipe.weight_decay / 2,
    "optimizer": lambda recipe: recipe.optimizer,
    "learning rate": lambda recipe: recipe.lr,
    "epochs": lambda recipe: recipe.epochs,
    "learning rate of the fine-tuning": lambda recipe: fine_tuning(recipe).lr,
    "in-domain rotation, shift, flip": lambda recipe: parts(recipe.augmentation),
    "OOD rotation, shift, flip": lambda recipe: parts(outlier_augmentation(recipe)),
    "fine-tuning rotation, shift, flip": lambda recipe: parts(fine_tuning(recipe).augmentation),
    "fill": fills,
    "dropout": lambda recipe: recipe.drop_rate,
}


@pytest.mark.parametrize("figure", AUTHORS)
@pytest.mark.parametrize(("column", "name"), [(0, "c10"), (1, "c100"), (2, "tim")])
def test_a_recipe_has_the_figure_of_the_authors(figure: str, column: int, name: str) -> None:
    assert OURS[figure](Recipe.named(name)) == AUTHORS[figure][column]


def test_the_rate_of_c10_is_halved_every_twenty_epochs_down_to_a_floor() -> None:
    recipe = Recipe.named("c10")
    assert recipe.momentum == 0.9
    assert recipe.schedule.model_dump() == {
        "sched": "step", "decay_epochs": 20, "decay_rate": 0.5, "min_lr": 5e-7, "warmup_epochs": 0
    }  # fmt: skip


@pytest.mark.parametrize("name", ["c100", "tim"])
def test_the_rate_of_adam_is_constant(name: str) -> None:
    schedule = Recipe.named(name).schedule
    assert (schedule.sched, schedule.decay_rate, schedule.warmup_epochs) == ("step", 1, 0)


def test_samples_of_a_batch_are_weighted_by_gamma_as_their_numbers() -> None:
    # the authors average the joined batch
    for name in ("c10", "c100", "tim"):
        recipe = Recipe.named(name)
        assert recipe.gamma == recipe.outlier_batch_size / recipe.batch_size == 0.5
