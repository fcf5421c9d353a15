"""How to train: optimizer, schedule, batches, augmentation. The recipes themselves are data."""

import tomllib
from functools import cache
from importlib.resources import files
from typing import Any, Literal

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from dpn_plugin.data import Augmentation
from dpn_plugin.errors import UserError, unknown_name

__all__ = ["FineTune", "Recipe", "Schedule", "list_recipes"]


#: along a side of an image: beyond all networks, and a single image of it still fits the memory
MOST_PIXELS = 8192


class Schedule(BaseModel):
    """Keywords of timm's ``create_scheduler_v2``, in epochs."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    sched: Literal["cosine", "poly", "step", "tanh"] = "cosine"
    decay_epochs: int = Field(90, ge=1)
    decay_rate: float = Field(0.1, gt=0)
    min_lr: float = Field(0.0, ge=0)
    warmup_epochs: int = Field(0, ge=0)


class FineTune(BaseModel):
    """A short last phase at a low, constant rate."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    epochs: int = Field(ge=0)
    lr: float = Field(gt=0)
    augmentation: Augmentation = Augmentation()


class Recipe(BaseModel):
    """
    Everything about training but the data, the network and the method.

    :param optimizer: a name of timm's ``create_optimizer_v2``
    :param outlier_batch_size: OOD samples beside each in-domain batch
    :param gamma: weight of the OOD samples in the loss
    :param image_size: pixels along a side; images keep their own size without it
    :param hold_out: share of the training data (and of the outliers) kept for selection
    :param clip_grad: largest norm of the gradient
    :param ema_decay: keep a moving average of the weights, and select and save that one
    :param amp: bfloat16 in the network; losses stay float32
    """

    model_config = ConfigDict(extra="forbid", frozen=True)

    optimizer: str
    lr: float = Field(gt=0)
    momentum: float = Field(0.9, ge=0, lt=1)
    weight_decay: float = Field(0.0, ge=0)
    schedule: Schedule = Schedule()
    epochs: int = Field(ge=1)
    batch_size: int = Field(ge=1)
    outlier_batch_size: int = Field(ge=1)
    gamma: float = Field(0.5, gt=0)
    augmentation: Augmentation = Augmentation()
    fine_tune: FineTune | None = None
    image_size: int | None = Field(None, ge=1, le=MOST_PIXELS)
    drop_rate: float | None = Field(None, ge=0, lt=1)
    hold_out: float = Field(0.1, gt=0, lt=1)
    clip_grad: float | None = Field(None, gt=0)
    ema_decay: float | None = Field(None, gt=0, lt=1)
    amp: bool = False
    channels_last: bool = False
    compile: bool = False

    @property
    def total_epochs(self) -> int:
        """Epochs of both phases."""
        return self.epochs + (self.fine_tune.epochs if self.fine_tune else 0)

    @classmethod
    def named(cls, name: str, **changes: Any) -> "Recipe":
        """
        :param name: a recipe of :func:`list_recipes`
        :param changes: fields to set otherwise; ``None`` leaves the recipe's own, and so does a
            table, e.g. ``augmentation={"flip": False}``, with the keys that it lacks
        :raises UserError: if there is no such recipe or field, or a value is out of range
        """
        recipes = _recipes()
        if name not in recipes:
            raise unknown_name("recipe", name, recipes)
        given = {key: value for key, value in changes.items() if value is not None}
        for key in given:
            if key not in cls.model_fields:
                raise unknown_name("training option", key, cls.model_fields)
        try:
            return cls.model_validate(_merged(recipes[name], given))
        except ValidationError as error:
            first = error.errors(include_url=False)[0]
            key = ".".join(map(str, first["loc"]))
            raise UserError(f"{key}: {first['msg']}, not {first['input']!r}.") from error


def list_recipes() -> list[str]:
    """:return: the names of the recipes"""
    return sorted(_recipes())


def _merged(base: dict[str, Any], changes: dict[str, Any]) -> dict[str, Any]:
    return base | {
        key: _merged(base[key], value)
        if isinstance(value, dict) and isinstance(base.get(key), dict)
        else value
        for key, value in changes.items()
    }


@cache
def _recipes() -> dict[str, dict[str, Any]]:
    return tomllib.loads(files("dpn_plugin.training").joinpath("recipes.toml").read_text("utf-8"))
