"""``dpn list recipes``: the recipes of training with their main settings."""

from dataclasses import asdict
from fnmatch import fnmatchcase
from typing import TYPE_CHECKING

from dpn_plugin.cli.output import print_json, print_note, print_table

if TYPE_CHECKING:  # it imports torch, which `dpn list --help` does not need
    from dpn_plugin.runs import Recipe

_COLUMNS = (
    "name",
    "optimizer",
    "lr",
    "schedule",
    "epochs",
    "batch",
    "outlier batch",
    "image size",
    "augmentation",
)


def list_recipes(pattern: str | None, as_json: bool) -> None:
    """
    Print the recipes that match a pattern.

    :param pattern: with wildcards; ``None`` for all
    :param as_json: print all their settings as JSON instead of a table
    """
    from dpn_plugin import runs

    names = [name for name in runs.list_recipes() if fnmatchcase(name, pattern or "*")]
    recipes = {name: runs.Recipe.named(name) for name in names}
    if as_json:
        found = recipes.items()
        print_json([{"name": name, **each.model_dump(mode="json")} for name, each in found])
    elif recipes:
        print_table("recipes", _COLUMNS, [_row(name, each) for name, each in recipes.items()])
        print_note(
            "All settings: dpn list recipes --json. To change one: --set KEY=VALUE, [train]."
        )
    else:
        print_note(f"No recipe matches {pattern!r}.")


def _row(name: str, recipe: "Recipe") -> list[str]:
    return [
        name,
        recipe.optimizer,
        f"{recipe.lr:g}",
        _schedule(recipe),
        _epochs(recipe),
        str(recipe.batch_size),
        str(recipe.outlier_batch_size),
        str(recipe.image_size or "-"),
        _augmentation(recipe),
    ]


def _schedule(recipe: "Recipe") -> str:
    schedule = recipe.schedule
    if schedule.sched != "step":
        warmup = f", warm-up {schedule.warmup_epochs}" if schedule.warmup_epochs else ""
        return f"{schedule.sched}{warmup}"
    if schedule.decay_rate == 1:
        return "constant"
    return f"x {schedule.decay_rate:g} every {schedule.decay_epochs} epochs"


def _epochs(recipe: "Recipe") -> str:
    """Return the epochs of both phases."""
    more = recipe.fine_tune.epochs if recipe.fine_tune else 0
    return f"{recipe.epochs} + {more}" if more else str(recipe.epochs)


def _augmentation(recipe: "Recipe") -> str:
    """Return what is not zero or off, and with it how the border is filled."""
    moves = asdict(recipe.augmentation)
    fill = moves.pop("fill")
    used = [k if v is True else f"{k} {v:g}" for k, v in moves.items() if v]
    return ", ".join([*used, f"fill {fill}"]) if used else "-"
