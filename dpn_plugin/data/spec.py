"""The specification of a data set, in a suite file or on the command line."""

import re
from collections.abc import Callable, Mapping
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

from dpn_plugin.errors import UserError, validation_message


class ClassRange(BaseModel):
    """
    Consecutive labels: ``first`` of them, starting with ``from``.

    ``{ first = 170 }`` is 0 to 169, ``{ from = 170 }`` all others, ``{ from = 10, first = 5 }`` is
    10 to 14.
    """

    model_config = ConfigDict(extra="forbid", frozen=True, populate_by_name=True)

    start: StrictInt = Field(0, alias="from", ge=0)
    first: StrictInt | None = Field(None, ge=1)

    @property
    def stop(self) -> int | None:
        """The label after the last one, or ``None`` if the range has no end."""
        return None if self.first is None else self.start + self.first


def _kind(classes: Any) -> str | None:
    if isinstance(classes, ClassRange | Mapping):
        return "range"
    if isinstance(classes, list | tuple) and classes:
        return "numbers" if isinstance(classes[0], int) else "names"
    return None


# with a discriminator, an error is about the kind that the user wrote, not about all of them
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
    A data set by name, and the part of it that is used.

    :param source: ``"scheme:argument"``, e.g. ``"torchvision:MNIST"`` or ``"npz:drawings.npz"``
    :param split: ``"train"``, ``"test"`` or the source's own name; its default if left out
    :param classes: labels or names to keep, or a :class:`ClassRange`
    :param limit: keep at most this many samples: a seeded random subset of those left by
        ``classes``, not stratified, in the source's order
    :param skip_damaged: leave out images that cannot be read, and count them; otherwise the first
        of them is an error
    :param options: further keywords of the source, e.g. ``{ small = true }`` for
        ``torchvision:Places365``
    """

    model_config = ConfigDict(extra="forbid", frozen=True)

    source: StrictStr
    split: StrictStr | None = None
    classes: Classes | None = None
    limit: StrictInt | None = Field(None, ge=1)
    skip_damaged: StrictBool = False
    options: dict[
        str,
        StrictBool | StrictInt | StrictFloat | StrictStr | tuple[StrictInt | StrictStr, ...],
    ] = {}

    @property
    def scheme(self) -> str:
        """The part before the first colon."""
        return self.source.partition(":")[0]

    @property
    def argument(self) -> str:
        """The part after the first colon."""
        return self.source.partition(":")[2]

    @property
    def name(self) -> str:
        """The name of the data in messages: ``torchvision:MNIST (test)``."""
        return self.source if self.split is None else f"{self.source} ({self.split})"

    @property
    def selection(self) -> str:
        """The part that is taken: ``classes=0-6, limit=300, patches=600``; empty for all."""
        parts = {"classes": _classes_text(self.classes), "limit": self.limit, **self.options}
        shown = {key: _option_text(each) for key, each in parts.items() if each is not None}
        return ", ".join(f"{key}={text}" for key, text in shown.items())

    @classmethod
    def parse(cls, value: "SourceSpec | str | Mapping[str, Any]", key: str = "") -> "SourceSpec":
        """
        Return the specification that a value of a suite file or a text describes.

        A text, alone or as the ``source`` of a table, may be followed by keys:
        ``npz:a.npz?classes=0-169&limit=20000``. There, ``split``, ``classes`` (``0-169``, ``170-``
        for all others, ``3,5`` or names) and ``limit`` are the fields of this class; any other key
        is an option of the source.

        :param value: a specification, a text, or a table
        :param key: the key of the value, e.g. ``"far.mnist"`` or ``"--in-domain"``, for messages
        :raises UserError: naming the key that is wrong
        """
        try:
            return cls.model_validate(_as_table(value, key))
        except ValidationError as error:
            raise UserError(validation_message(error, cls, key)) from error

    @classmethod
    def from_text(cls, text: str, key: str = "", limit: int | None = None) -> "SourceSpec":
        """
        Return the specification that a text describes, with an upper bound on its limit.

        :param text: see :meth:`parse`
        :param key: where it was given, e.g. ``"--in-domain"``, for messages
        :param limit: an upper bound on the number of samples, whatever ``text`` sets
        :raises UserError: if it cannot be parsed
        """
        spec = cls.parse(text, key)
        if limit is None or (spec.limit is not None and spec.limit <= limit):
            return spec
        return spec.model_copy(update={"limit": limit})

    @model_validator(mode="before")
    @classmethod
    def _from_text(cls, value: Any) -> Any:
        return _as_table(value)

    @field_validator("source")
    @classmethod
    def _has_scheme(cls, value: str) -> str:
        scheme, _, argument = value.partition(":")
        if not scheme or not argument:
            raise ValueError("Input should read 'scheme:argument' like 'torchvision:MNIST'")
        return value


def _as_table(value: Any, key: str = "") -> Any:
    """Return a text as the table that it describes; a value of another kind stays as it is."""
    table = {"source": value} if isinstance(value, str) else value
    if not isinstance(table, Mapping) or not isinstance(table.get("source"), str):
        return value
    source, question_mark, query = table["source"].partition("?")
    if not question_mark:
        return table
    fields, options = _parse_query(query, key or table["source"])
    given = table.get("options", {})
    if not isinstance(given, Mapping):
        return {**table, **fields, "source": source}  # the validation refuses these options
    if doubled := (fields.keys() & table.keys()) | (options.keys() & given.keys()):
        raise _given_twice(key or source, min(doubled))
    return {**table, **fields, "source": source, "options": {**options, **given}}


def _parse_query(query: str, key: str) -> tuple[dict[str, Any], dict[str, Any]]:
    """Return the fields of a specification and the options of its source."""
    fields: dict[str, Any] = {}
    options: dict[str, Any] = {}
    for part in filter(None, query.split("&")):
        name, equals, value = part.partition("=")
        if not equals:
            raise UserError(f"{key}: {part!r} must read key=value, e.g. 'split=test'.")
        if name in fields or name in options:
            raise _given_twice(key, name)
        if name in _PARSERS:
            fields[name] = _PARSERS[name](value)
        else:
            options[name] = parse_value(value)
    return fields, options


def _given_twice(key: str, name: str) -> UserError:
    return UserError(f"{key}: {name!r} is given twice. Leave one of them out.")


def parse_value(text: str) -> bool | int | float | str:
    """Return the truth value or number that ``text`` denotes, or ``text`` itself."""
    if text.lower() in ("true", "false"):
        return text.lower() == "true"
    for kind in (int, float):
        try:
            return kind(text)
        except ValueError:
            continue
    return text


def _parse_classes(text: str) -> Any:
    found = re.fullmatch(r"(\d{1,9})-(\d{0,9})", text)
    if not found:
        return [parse_value(each) if each.isdigit() else each for each in text.split(",")]
    first, last = int(found[1]), found[2]
    if not last:
        return {"from": first}
    if int(last) < first:
        raise UserError(f"classes={text}: the last class must not be below the first.")
    return {"from": first, "first": int(last) - first + 1}


_PARSERS: dict[str, Callable[[str], Any]] = {
    "split": str,
    "classes": _parse_classes,
    "limit": parse_value,
    "skip_damaged": parse_value,
}

#: the keys that every source takes, beside its own options
SOURCE_KEYS = tuple(_PARSERS)


def _option_text(value: object) -> str:
    return ",".join(map(str, value)) if isinstance(value, tuple) else str(value)


def _classes_text(classes: ClassRange | tuple[int, ...] | tuple[str, ...] | None) -> str | None:
    if classes is None:
        return None
    if isinstance(classes, ClassRange):
        return f"{classes.start}-{'' if classes.stop is None else classes.stop - 1}"
    return ",".join(map(str, classes))
