"""A suite file: which data, which networks, which methods and detectors."""

import os
import tomllib
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Literal, Self

from pydantic import (
    BaseModel,
    ConfigDict,
    Field,
    StrictInt,
    ValidationError,
    ValidationInfo,
    field_validator,
    model_validator,
)

from dpn_plugin.data import SourceSpec
from dpn_plugin.errors import UserError, unknown_name
from dpn_plugin.plugins import registry
from dpn_plugin.training import Recipe
from dpn_plugin.training.recipe import MOST_PIXELS

__all__ = ["Suite", "TrainTable", "load_suite"]

#: more are a slip of the pen, and a plan of millions of runs fills the memory
MOST_SEEDS = 1000

PAPER_DETECTORS = (
    "dpn-maxp",
    "dpn-entropy",
    "dpn-mi",
    "dpn-precision",
    "dpn-dent",
    "dpn-gaussian-kl",
)
PAPER_METHODS = (
    "baseline",
    "mcdp",
    "deep-ensemble",
    "edl",
    "oe",
    "dpn-fwd",
    "dpn-rev",
    "dpn-plus",
    "dpn-minus",
    "binary",
)


class TrainTable(BaseModel):
    """
    ``[train]``: the backbone, the recipe, and any field of the recipe that is to be otherwise.

    :param backbone: a timm id
    :param recipe: name of a recipe
    :param stem: ``"auto"``, ``"default"`` or ``"small"``
    """

    model_config = ConfigDict(extra="allow", frozen=True)

    backbone: str
    recipe: str = "small"
    stem: str = "auto"

    def made_recipe(self, **changes: Any) -> Recipe:
        """
        :param changes: fields of the recipe that the user sets; ``None`` leaves it
        :raises UserError: if a field does not exist
        """
        extra = self.model_extra or {}
        given = {key: value for key, value in changes.items() if value is not None}
        return Recipe.named(self.recipe, **{**extra, **given})


class Suite(BaseModel):
    """
    :param title: one line for people
    :param in_domain: training data
    :param in_domain_test: test data; without it, a fifth of ``in_domain`` is kept back
    :param outliers: OOD training data: one source, or named ones
    :param near: OOD test sets that are close to the classes
    :param far: OOD test sets that are not
    :param input_size: channels, height, width that images are brought to
    :param methods: what to train
    :param detectors: names or wildcards of what to score with
    :param seeds: how many runs
    :param paper_task: the paper's name of the task, to set its figures beside ours
    :param notes: what a reader of the results must know
    """

    model_config = ConfigDict(extra="forbid", frozen=True)

    title: str
    in_domain: SourceSpec
    in_domain_test: SourceSpec | None = None
    outliers: dict[str, SourceSpec] = Field(default_factory=dict)
    near: dict[str, SourceSpec] = Field(default_factory=dict)
    far: dict[str, SourceSpec] = Field(default_factory=dict)
    input_size: tuple[int, int, int] | None = None
    train: TrainTable
    methods: list[str] = Field(list(PAPER_METHODS), min_length=1)
    detectors: list[str] = Field(list(PAPER_DETECTORS), min_length=1)
    seeds: StrictInt = Field(3, ge=1, le=MOST_SEEDS)
    paper_task: Literal["C10", "C100", "TIM"] | None = None
    notes: list[str] = []

    @field_validator("in_domain", "in_domain_test", mode="before")
    @classmethod
    def _source(cls, value: Any, info: ValidationInfo) -> SourceSpec:
        return SourceSpec.parse(value, info.field_name or "")

    @field_validator("outliers", mode="before")
    @classmethod
    def _one_or_several(cls, value: Any) -> Any:
        if isinstance(value, str) or (isinstance(value, Mapping) and "source" in value):
            return {"outliers": SourceSpec.parse(value, "outliers")}
        return _sources(value, "outliers")

    @field_validator("near", "far", mode="before")
    @classmethod
    def _by_name(cls, value: Any, info: ValidationInfo) -> Any:
        group = info.field_name or ""
        if isinstance(value, str) or (isinstance(value, Mapping) and "source" in value):
            raise UserError(f"[{group}]: every set has a name of its own: write [{group}.NAME].")
        for name in value if isinstance(value, Mapping) else ():
            if name in ("near", "far", ""):
                raise UserError(f"{group}.{name}: {name!r} stands for the mean of a group's sets.")
        return _sources(value, group)

    @model_validator(mode="after")
    def _test_sets(self) -> Self:
        if not self.near and not self.far:
            raise UserError("There are no OOD test sets, [near.NAME] or [far.NAME].")
        for name in self.near.keys() & self.far.keys():
            raise UserError(f"near.{name} and far.{name}: names of sets must differ.")
        return self

    @field_validator("input_size")
    @classmethod
    def _square(cls, value: tuple[int, int, int] | None) -> tuple[int, int, int] | None:
        if value is not None and (
            value[1] != value[2] or value[0] not in (1, 3) or not 1 <= value[1] <= MOST_PIXELS
        ):
            raise ValueError(
                "Input should be [channels, size, size] with 1 or 3 channels and a size of at most "
                f"{MOST_PIXELS}"
            )
        return value

    @property
    def groups(self) -> dict[str, dict[str, SourceSpec]]:
        """The OOD test sets by group."""
        return {"near": self.near, "far": self.far}


def load_suite(name: str) -> tuple[str, Suite, Path]:
    """
    :param name: a suite's name, or the path of a suite file
    :return: its name, the suite, and the folder that relative paths in it start from
    :raises UserError: if there is none, or a key in it is wrong
    """
    path = _suite_path(name)
    try:
        table = tomllib.loads(path.read_text("utf-8"))
    except tomllib.TOMLDecodeError as error:
        raise UserError(f"{path} is not valid TOML: {error}.") from error
    except RecursionError as error:
        raise UserError(
            f"{path} is not a suite: its tables or lists are nested too deep."
        ) from error
    except (OSError, UnicodeDecodeError) as error:
        raise UserError(f"{path} cannot be read: {error}.") from error
    try:
        suite = Suite.model_validate(table)
    except ValidationError as error:
        raise UserError(f"{path.name}: {_sentence(error)}") from error
    try:
        suite.train.made_recipe()
    except UserError as error:
        raise UserError(f"{path.name}: [train]: {error}") from error
    return path.stem, suite, path.parent


def _suite_path(name: str) -> Path:
    if name.endswith(".toml") or "/" in name:
        # os.path: a name that the system cannot have is no file either, and no error
        if not os.path.isfile(name):
            raise UserError(f"There is no suite file {name!r}.")
        return Path(name)
    return Path(registry.load("suites", name))


def _sources(value: Any, key: str) -> Any:
    """:return: the named sources of a table; what is no table, as it is"""
    if not isinstance(value, Mapping):
        return value
    return {name: SourceSpec.parse(spec, f"{key}.{name}") for name, spec in value.items()}


def _sentence(error: ValidationError) -> str:
    first = error.errors(include_url=False)[0]
    raised = first.get("ctx", {}).get("error")
    if isinstance(raised, UserError):
        return str(raised)  # names its key itself
    key = ".".join(str(part) for part in first["loc"])
    if first["type"] == "extra_forbidden":
        return str(unknown_name("key", key, Suite.model_fields))
    if first["type"] == "missing":
        return f"{key} is missing."
    return f"{key}: {first['msg'].removeprefix('Value error, ')}, not {first['input']!r}."
