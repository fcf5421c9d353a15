"""What a suite file contains: which data, which networks, which methods and detectors."""

from collections.abc import Collection, Mapping
from difflib import get_close_matches
from itertools import combinations
from typing import Any, Literal, Self

from pydantic import (
    BaseModel,
    ConfigDict,
    Field,
    StrictInt,
    ValidationInfo,
    field_validator,
    model_validator,
)

from dpn_plugin.bench.search import SearchTable
from dpn_plugin.bench.variants import MethodsTable
from dpn_plugin.data import SourceSpec, shifted_sets, split_severity
from dpn_plugin.errors import UserError, unknown_name
from dpn_plugin.outputs import FIT_SAMPLES
from dpn_plugin.runs import LARGEST_IMAGE, Recipe

#: more are a typo, and a plan of millions of runs fills the memory
MOST_SEEDS = 1000

PAPER_DETECTORS = (
    "dpn-maxp",
    "dpn-entropy",
    "dpn-mi",
    "dpn-precision",
    "dpn-dent",
    "dpn-gaussian-kl",
)


class TrainTable(BaseModel):
    """
    ``[train]``: the backbone, the recipe, and any field of the recipe to change.

    :param backbone: a timm id
    :param recipe: name of a recipe
    :param stem: ``"auto"``, ``"default"`` or ``"small"``
    :param pretrained: start from the weights that timm publishes
    :param weights: start from the weights of this file
    """

    model_config = ConfigDict(extra="allow", frozen=True)

    backbone: str
    recipe: str = "small"
    stem: str = "auto"
    pretrained: bool = False
    weights: str | None = None

    @model_validator(mode="before")
    @classmethod
    def _known_keys(cls, value: Any) -> Any:
        known = [*cls.model_fields, *Recipe.model_fields]
        for key in value if isinstance(value, Mapping) else ():
            if key not in known:
                raise UserError(f"[train]: {unknown_name('training option', str(key), known)}")
        return value

    def create_recipe(self, **changes: Any) -> Recipe:
        """
        Return the recipe with the fields of this table.

        :param changes: further fields that the user sets; ``None`` keeps the value
        :raises UserError: if a field does not exist
        """
        extra = self.model_extra or {}
        given = {key: value for key, value in changes.items() if value is not None}
        return Recipe.named(self.recipe, **{**extra, **given})


class Suite(BaseModel):
    """
    A benchmark suite.

    :param title: one line for people
    :param in_domain: training data
    :param in_domain_test: test data; without it, a fifth of ``in_domain`` is kept back
    :param calibration: in-domain data to calibrate thresholds with; without it, the share
        ``calibration`` of ``[train]``
    :param outliers: OOD training data: one source, or named ones
    :param near: OOD test sets that are close to the classes
    :param far: OOD test sets that are not
    :param shift: test sets of in-domain classes under changed conditions; a source ``corrupted:``
        becomes one set for each corruption and severity, ``NAME@SEVERITY``
    :param input_size: channels, height and width of the images that networks get
    :param methods: what to train
    :param detectors: names or wildcards of what to score with
    :param search: how the hyper-parameters of methods are searched on held-out data, if at all
    :param seeds: how many runs
    :param calibration_samples: in-domain and OOD samples of a calibration error, at most so many of
        each; without it, as many as there are
    :param fit_samples: training and held-out samples that detectors are fitted to, at most so many
        of each; some hold all of them in memory
    :param overlap: what to do if a test set shares images with other data: stop, or remove them
        from the test set
    :param paper_task: the paper's name of the task, to set its figures beside ours
    :param notes: what a reader of the results must know
    """

    model_config = ConfigDict(extra="forbid", frozen=True)

    title: str
    in_domain: SourceSpec
    in_domain_test: SourceSpec | None = None
    calibration: SourceSpec | None = None
    outliers: dict[str, SourceSpec] = Field(default_factory=dict)
    near: dict[str, SourceSpec] = Field(default_factory=dict)
    far: dict[str, SourceSpec] = Field(default_factory=dict)
    shift: dict[str, SourceSpec] = Field(default_factory=dict)
    input_size: tuple[int, int, int] | None = None
    train: TrainTable
    methods: MethodsTable = MethodsTable()
    detectors: list[str] = Field(list(PAPER_DETECTORS), min_length=1)
    search: SearchTable | None = None
    seeds: StrictInt = Field(3, ge=1, le=MOST_SEEDS)
    calibration_samples: StrictInt | None = Field(None, ge=1)
    fit_samples: StrictInt = Field(FIT_SAMPLES, ge=1)
    overlap: Literal["error", "drop"] = "error"
    paper_task: Literal["C10", "C100", "TIM"] | None = None
    notes: list[str] = []

    @field_validator("in_domain", "in_domain_test", "calibration", mode="before")
    @classmethod
    def _source(cls, value: Any, info: ValidationInfo) -> SourceSpec:
        return SourceSpec.parse(value, info.field_name or "")

    @field_validator("outliers", mode="before")
    @classmethod
    def _one_or_several(cls, value: Any) -> Any:
        if _is_one_source(value):
            return {"outliers": SourceSpec.parse(value, "outliers")}
        return _sources(value, "outliers")

    @field_validator("near", "far", "shift", mode="before")
    @classmethod
    def _by_name(cls, value: Any, info: ValidationInfo) -> Any:
        group = info.field_name or ""
        if _is_one_source(value):
            raise UserError(f"[{group}]: every set needs a name: write [{group}.NAME].")
        for name in value if isinstance(value, Mapping) else ():
            if split_severity(name)[0] in ("near", "far", "shift", ""):
                raise UserError(f"{group}.{name}: {name!r} stands for the mean of a group's sets.")
        return _sources(value, group)

    @field_validator("shift")
    @classmethod
    def _by_severity(cls, value: dict[str, SourceSpec]) -> dict[str, SourceSpec]:
        found: dict[str, SourceSpec] = {}
        for name, spec in value.items():
            try:
                sets = shifted_sets(name, spec)
            except UserError as error:
                raise UserError(f"shift.{name}: {error}") from error
            for doubled in sets.keys() & found.keys():
                raise UserError(f"shift.{name}: there are two sets {doubled!r}.")
            found |= sets
        for name in found.keys() & {split_severity(each)[0] for each in found if "@" in each}:
            if split_severity(name)[1] is None:
                raise UserError(f"shift.{name}: {name!r} stands for the mean of its severities.")
        return found

    @model_validator(mode="after")
    def _test_sets(self) -> Self:
        if not self.near and not self.far:
            raise UserError("There are no OOD test sets, [near.NAME] or [far.NAME].")
        for a, b in combinations(("near", "far", "shift"), 2):
            for name in getattr(self, a).keys() & _with_shifts(getattr(self, b)):
                raise UserError(f"{a}.{name} and {b}.{name}: names of sets must differ.")
        return self

    @model_validator(mode="after")
    def _one_calibration(self) -> Self:
        if self.calibration is not None and (self.train.model_extra or {}).get("calibration"):
            raise UserError("There is a source [calibration] and a share in [train]: give one.")
        return self

    @field_validator("input_size", mode="before")
    @classmethod
    def _square(cls, value: Any) -> Any:
        match value:
            case None:
                return value
            case [int(channels), int(height), int(width)]:
                if channels in (1, 3) and 1 <= height == width <= LARGEST_IMAGE:
                    return value
        raise ValueError(
            "Input should be [channels, size, size] with 1 or 3 channels and a size of at most "
            f"{LARGEST_IMAGE}, e.g. [3, 32, 32]"
        )

    @property
    def groups(self) -> dict[str, dict[str, SourceSpec]]:
        """The OOD test sets by group."""
        return {"near": self.near, "far": self.far}

    @property
    def sources(self) -> dict[str, SourceSpec]:
        """All data of the suite by its key, e.g. ``far.mnist``."""
        own = {"in_domain_test": self.in_domain_test, "calibration": self.calibration}
        given = {key: spec for key, spec in own.items() if spec is not None}
        found = {"in_domain": self.in_domain, **given}
        for group, sets in {"outliers": self.outliers, **self.groups, "shift": self.shift}.items():
            found |= {(group if name == group else f"{group}.{name}"): sets[name] for name in sets}
        return found

    def without_sets(self, names: Collection[str]) -> "Suite":
        """Return the suite without the named OOD test sets and shifted sets."""
        groups = {
            group: {name: spec for name, spec in sets.items() if name not in names}
            for group, sets in {**self.groups, "shift": self.shift}.items()
        }
        return self.model_copy(update=groups)


def _with_shifts(sets: Collection[str]) -> set[str]:
    """Return the names of sets, and of the shifts that have several severities."""
    return {*sets, *(split_severity(name)[0] for name in sets)}


def _is_one_source(value: Any) -> bool:
    """Return whether a value describes one source, and not a table of named ones."""
    if not isinstance(value, Mapping):
        return isinstance(value, str | SourceSpec)
    return any(_is_source_key(str(key), each) for key, each in value.items())


def _is_source_key(key: str, value: Any) -> bool:
    """Return whether this is a key of a source, also if it is misspelt, and not a named source."""
    if isinstance(value, Mapping) and "source" in value:
        return False
    known = ["source"] if isinstance(value, str) else SourceSpec.model_fields
    return bool(get_close_matches(key, known, n=1, cutoff=0.8))


def _sources(value: Any, key: str) -> Any:
    """Return the named sources of a table; any other value is returned unchanged."""
    if not isinstance(value, Mapping):
        return value
    return {name: SourceSpec.parse(spec, f"{key}.{name}") for name, spec in value.items()}
