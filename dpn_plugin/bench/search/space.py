"""``[search]`` of a suite: how many trials, and the ranges of the hyper-parameters."""

import math
from collections.abc import Iterator, Mapping
from itertools import product
from random import Random
from typing import Annotated, Any, Literal, Self

from pydantic import BaseModel, ConfigDict, Field, StrictInt, field_validator, model_validator

from dpn_plugin.errors import UserError, unknown_name
from dpn_plugin.runs import Recipe

Value = bool | int | float | str
#: fields of a recipe that decide which samples are held out, or what a network is
_NOT_SEARCHED = ("hold_out", "calibration", "image_size", "views", "freeze", "head")
#: a longer list of values is a typo; a grid of such lists fills the memory
_MOST_VALUES = 1000


class Range(BaseModel):
    """
    A range of numbers.

    :param low: lower end
    :param high: upper end, included
    :param log: whether numbers are spread evenly in their logarithms
    :param whole: whether only whole numbers are taken
    """

    model_config = ConfigDict(extra="forbid", frozen=True, allow_inf_nan=False)

    low: float
    high: float
    log: bool = False
    whole: bool = False

    @model_validator(mode="after")
    def _ordered(self) -> Self:
        if not self.low < self.high:
            raise ValueError(f"low must be below high, and {self.low:g} is not below {self.high:g}")
        if self.log and self.low <= 0:
            raise ValueError(f"log needs numbers above 0, and low is {self.low:g}")
        return self

    @property
    def text(self) -> str:
        """The range as people read it."""
        kinds = [kind for kind in ("log", "whole") if getattr(self, kind)]
        return f"{self.low:g} to {self.high:g}" + (f" ({', '.join(kinds)})" if kinds else "")

    @property
    def ends(self) -> tuple[Value, Value]:
        """The smallest and the largest value."""
        return (round(self.low), round(self.high)) if self.whole else (self.low, self.high)

    def at(self, share: float) -> Value:
        """Return the number at a share of the way from low to high, rounded to four digits."""
        if self.log:
            value = math.exp(math.log(self.low) + share * math.log(self.high / self.low))
        else:
            value = self.low + share * (self.high - self.low)
        # rounding must not leave the range
        value = min(max(float(f"{value:.4g}"), self.low), self.high)
        return round(value) if self.whole else value


Choices = Annotated[list[Value], Field(min_length=1, max_length=_MOST_VALUES)]
#: the ranges of a method's hyper-parameters by name
Space = dict[str, Range | Choices]


class SearchTable(BaseModel):
    """
    ``[search]``: an equally large search for every method of the suite.

    :param trials: trainings of every method, the first one with the settings of the suite
    :param sampler: ``"random"`` (a Latin hypercube), ``"grid"`` (lists only; a seeded part of it
        if it is larger), or ``"tpe"`` of Optuna, which needs the extra ``search``
    :param seed: of the trials' networks, and of the random numbers
    :param tolerance: a method that is trained with outliers may lose so much accuracy, relative to
        the first trial, for a better detection of held-out outliers
    :param train: ranges of fields of the recipe, for every method
    :param methods: ranges of options of a method, or of fields of its recipe, by method
    """

    model_config = ConfigDict(extra="forbid", frozen=True)

    trials: StrictInt = Field(8, ge=1, le=10_000)
    sampler: Literal["random", "grid", "tpe"] = "random"
    seed: StrictInt = Field(0, ge=0, lt=2**31)
    tolerance: float = Field(0.01, ge=0, lt=1)
    train: Space = {}
    methods: dict[str, Space] = {}

    @field_validator("train")
    @classmethod
    def _recipe_fields(cls, value: Space) -> Space:
        for key in value:
            if not is_recipe_field(key):
                known = [name for name in Recipe.model_fields if is_recipe_field(name)]
                raise UserError(f"[search.train]: {unknown_name('training option', key, known)}")
        return value

    @model_validator(mode="after")
    def _lists_for_a_grid(self) -> Self:
        if self.sampler != "grid":
            return self
        for where, space in {"train": self.train, **self.methods}.items():
            for key, values in space.items():
                if isinstance(values, Range):
                    raise UserError(
                        f'[search] {where}.{key}: sampler = "grid" takes lists of values, not a '
                        'range; use sampler = "random".'
                    )
        return self

    def space(self, method: str) -> Space:
        """Return the ranges of a method: those of all methods, and its own."""
        return {**self.train, **self.methods.get(method, {})}


def is_recipe_field(key: str) -> bool:
    """Return whether a name is that of a field of a recipe that may be searched."""
    return key in Recipe.model_fields and key not in _NOT_SEARCHED


def split_values(values: Mapping[str, Value]) -> tuple[dict[str, Value], dict[str, Value]]:
    """Return the fields of the recipe, and the options of the method."""
    train = {key: value for key, value in values.items() if key in Recipe.model_fields}
    return train, {key: value for key, value in values.items() if key not in train}


def describe_ranges(space: Space) -> dict[str, str]:
    """Return the ranges as people read them."""
    return {
        key: each.text if isinstance(each, Range) else ", ".join(map(str, each))
        for key, each in space.items()
    }


def draw_values(space: Space, seed: int, number: int, trials: int) -> dict[str, Value]:
    """
    Return the random values of one trial.

    They are a Latin hypercube: each of ``trials`` equal parts of every range has one trial, so that
    few trials cover it.

    :param space: the ranges
    :param seed: of the search
    :param number: of the trial, from 0
    :param trials: how many are drawn
    """
    found: dict[str, Value] = {}
    for key, each in space.items():
        # every hyper-parameter has its own numbers: another one more does not change them
        parts = list(range(trials))
        Random(f"{seed} {key}").shuffle(parts)
        share = (parts[number] + Random(f"{seed} {key} {number}").random()) / trials
        found[key] = each.at(share) if isinstance(each, Range) else each[int(share * len(each))]
    return found


def grid_values(space: Space, seed: int) -> Iterator[dict[str, Value]]:
    """Return all combinations of the lists in a random order."""
    lists: list[Any] = [each for each in space.values() if isinstance(each, list)]
    size = math.prod(map(len, lists))
    if size > _MOST_VALUES**2:
        raise UserError(f"[search]: the grid has {size:,} combinations; shorten its lists.")
    combinations = list(product(*lists))
    Random(seed).shuffle(combinations)
    return (dict(zip(space, each, strict=True)) for each in combinations)
