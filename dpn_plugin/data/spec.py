"""Which data: the description that suite files and commands share."""

from collections.abc import Mapping
from typing import Annotated, Any

from pydantic import (
    BaseModel,
    ConfigDict,
    Discriminator,
    Field,
    StrictBool,
    StrictFloat,
    StrictInt,
    StrictStr,
    Tag,
    ValidationError,
    field_validator,
    model_validator,
)

from dpn_plugin.errors import UserError

__all__ = ["ClassRange", "SourceSpec"]


class ClassRange(BaseModel):
    """
    Neighbouring labels: ``first`` of them, beginning with ``from``.

    ``{ first = 170 }`` is 0 to 169, ``{ from = 170 }`` all others, ``{ from = 10, first = 5 }`` is
    10 to 14.
    """

    model_config = ConfigDict(extra="forbid", frozen=True, populate_by_name=True)

    start: StrictInt = Field(0, alias="from", ge=0)
    first: StrictInt | None = Field(None, ge=1)

    @property
    def stop(self) -> int | None:
        """The label after the last one, or ``None`` for "all that there are"."""
        return None if self.first is None else self.start + self.first


_KINDS = ("numbers", "names", "range")


def _kind(classes: Any) -> str | None:
    if isinstance(classes, ClassRange | Mapping):
        return "range"
    if isinstance(classes, list | tuple) and classes:
        return "numbers" if isinstance(classes[0], int) else "names"
    return None


# told apart by hand, so that an error is about the kind that the user meant
Classes = Annotated[
    Annotated[tuple[StrictInt, ...], Tag("numbers")]
    | Annotated[tuple[StrictStr, ...], Tag("names")]
    | Annotated[ClassRange, Tag("range")],
    Discriminator(
        _kind,
        custom_error_type="classes",
        custom_error_message="Input should be a list of numbers or of names, or "
        "{ first = N }, { from = N } or both",
    ),
]


class SourceSpec(BaseModel):
    """
    A data set by name, and the part of it that is wanted.

    :param source: ``"scheme:argument"``, e.g. ``"torchvision:MNIST"`` or ``"npz:drawings.npz"``
    :param split: ``"train"``, ``"test"`` or the source's own word; its default if left out
    :param classes: labels or names to keep, or a :class:`ClassRange`
    :param limit: keep this many samples at most: a seeded random subset of those left by
        ``classes``, not stratified, in the source's order
    :param options: further keywords of the source, e.g. ``{ small = true }`` for
        ``torchvision:Places365``
    """

    model_config = ConfigDict(extra="forbid", frozen=True)

    source: StrictStr
    split: StrictStr | None = None
    classes: Classes | None = None
    limit: StrictInt | None = Field(None, ge=1)
    options: dict[str, StrictBool | StrictInt | StrictFloat | StrictStr] = {}

    @property
    def scheme(self) -> str:
        """What stands before the first colon."""
        return self.source.partition(":")[0]

    @property
    def argument(self) -> str:
        """What stands after the first colon."""
        return self.source.partition(":")[2]

    @property
    def name(self) -> str:
        """What messages call the data: ``torchvision:MNIST (test)``."""
        return self.source if self.split is None else f"{self.source} ({self.split})"

    @classmethod
    def parse(cls, value: "SourceSpec | str | Mapping[str, Any]", key: str = "") -> "SourceSpec":
        """
        :param value: a specification, its source alone, or its table
        :param key: where it stands, e.g. ``"far.mnist"``, for messages
        :raises UserError: naming the key that is wrong
        """
        try:
            return cls.model_validate(value)
        except ValidationError as error:
            raise UserError(_sentence(error, key)) from error

    @model_validator(mode="before")
    @classmethod
    def _from_source(cls, value: Any) -> Any:
        return {"source": value} if isinstance(value, str) else value

    @field_validator("source")
    @classmethod
    def _has_scheme(cls, value: str) -> str:
        scheme, _, argument = value.partition(":")
        if not scheme or not argument:
            raise ValueError("Input should read 'scheme:argument' like 'torchvision:MNIST'")
        return value


def _sentence(error: ValidationError, key: str) -> str:
    first = error.errors(include_url=False)[0]
    place = [str(part) for part in first["loc"] if part not in _KINDS]
    if place[:1] == ["options"]:
        place = place[:2]  # what follows is a member of the union of values
    where = ".".join([key, *place] if key else place) or "The source"
    if first["type"] == "extra_forbidden":
        allowed = ["first", "from"] if "classes" in place else SourceSpec.model_fields
        return f"{where} is not a key that a source has. Allowed: {', '.join(allowed)}."
    if first["type"] == "missing":
        return f"{where} is missing."
    return f"{where}: {first['msg'].removeprefix('Value error, ')}, not {first['input']!r}."
