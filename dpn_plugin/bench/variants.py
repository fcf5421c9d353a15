"""Variants of methods: a method with other options, its own label, rows and folder."""

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

from pydantic import BaseModel, ConfigDict, Field, model_validator

from dpn_plugin.bench.record import NotRun
from dpn_plugin.data import parse_value
from dpn_plugin.errors import UserError, unknown_name
from dpn_plugin.plugins import registry
from dpn_plugin.runs import TrainConfig

#: labels become names of folders and cells of tables
_LABEL = re.compile(r"[A-Za-z0-9][A-Za-z0-9_.+=,:{}-]{0,120}")

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

Options = dict[str, bool | int | float | str]


class MethodTable(BaseModel):
    """
    ``[methods.NAME]``: a method of the suite's own, or changes to one that exists.

    :param base: the method that it is a variant of; ``NAME`` itself if left out
    :param options: options of the method, e.g. ``{ lambda_out = 0.0 }``
    :param train: fields of the recipe to change, e.g. ``{ optimizer = "sgd" }``
    :param init_from: the method that trains the weights to start from
    """

    model_config = ConfigDict(extra="forbid", frozen=True)

    base: str | None = None
    options: Options = {}
    train: dict[str, Any] = {}
    init_from: str | None = None


class MethodsTable(BaseModel):
    """
    ``methods``: the methods that a suite compares.

    In a file it is a list of names, or a table ``[methods]`` with the list as ``run`` and a table
    for every method that the suite defines. Without a list, these are the paper's methods and those
    that the suite defines.

    :param run: names of methods, each optionally followed by options, ``dpn-minus:lambda_out=0``
    :param defined: the methods that the suite defines, by name
    """

    model_config = ConfigDict(extra="forbid", frozen=True)

    run: list[str] = Field(list(PAPER_METHODS), min_length=1)
    defined: dict[str, MethodTable] = {}

    @property
    def training_methods(self) -> list[str]:
        """The names of the training methods behind all methods of the suite."""
        listed = [text.partition(":")[0] for text in self.run]
        defined = [table.base or name for name, table in self.defined.items()]
        return list(dict.fromkeys([*(n for n in listed if n not in self.defined), *defined]))

    @model_validator(mode="before")
    @classmethod
    def _from_file(cls, value: Any) -> Any:
        if not isinstance(value, Mapping):
            return {"run": value}
        defined = {name: table for name, table in value.items() if name != "run"}
        for name in defined:
            _check_label(name, f"[methods.{name}]")
        run = value.get("run", list(dict.fromkeys([*PAPER_METHODS, *defined])))
        return {"run": run, "defined": defined}


class Variant(BaseModel):
    """
    One method of a plan.

    :param label: what results, folders and messages call it
    :param method: name of the training method
    :param options: options of the method
    :param train: fields of the recipe to change
    :param init_from: the method that trains the weights to start from
    """

    model_config = ConfigDict(frozen=True)

    label: str
    method: str
    options: Options = {}
    train: dict[str, Any] = {}
    init_from: str | None = None

    @property
    def needs_outliers(self) -> bool:
        """Whether it is trained with outliers."""
        needed: bool = registry.load("methods", self.method).needs_outliers
        return needed

    @property
    def trains(self) -> bool:
        """Whether it trains a network, so that seeds differ."""
        trains: bool = registry.load("methods", self.method).trains
        return trains


def find_variants(
    names: Sequence[str], table: MethodsTable, why_left_out: Callable[[Variant], str | None]
) -> tuple[list[Variant], tuple[NotRun, ...]]:
    """
    Return the methods of a plan, and those that are left out.

    :param names: names of methods with or without options; those of the suite if empty
    :param table: the methods that the suite lists and defines
    :param why_left_out: returns why a method cannot be trained, ``None`` if it can
    :raises UserError: if a name is unknown, or no method can be run
    """
    found = {each.label: each for each in (find_variant(n, table) for n in names or table.run)}
    reasons = {label: why_left_out(each) for label, each in found.items()}
    kept = [each for label, each in found.items() if reasons[label] is None]
    if not kept:
        reason = next(iter(reasons.values()))
        raise UserError(f"None of the methods {', '.join(found)} can be run: {reason}.")
    left_out = (NotRun(method=label, reason=each) for label, each in reasons.items() if each)
    return kept, tuple(left_out)


def find_variant(text: str, table: MethodsTable) -> Variant:
    """
    Return the method that a text names, e.g. ``dpn-minus`` or ``dpn-minus:lambda_out=0``.

    :param text: a name, optionally followed by a colon and options that are joined by commas
    :param table: the methods that the suite defines
    :raises UserError: if there is no such method, or an option is not of the form ``key=value``
    """
    name, colon, given = text.partition(":")
    variant = _by_name(name, table)
    if not colon:
        return variant
    options = _parse_options(text, given)
    label = f"{variant.label}:{_settings(options)}"
    _check_label(label, f"Method {text!r}")
    return variant.model_copy(update={"label": label, "options": {**variant.options, **options}})


def label_of(config: TrainConfig) -> str:
    """Return the label of a run that was trained outside of a benchmark."""
    return f"{config.method}:{_settings(config.options)}" if config.options else config.method


def join_options(parts: Iterable[str]) -> tuple[str, ...]:
    """
    Return the methods of a list that was split at every comma.

    Options stay with the method before them: the parts of ``oe,dpn-minus:lambda_in=0,lambda_out=0``
    name two methods.
    """
    found: list[str] = []
    for part in parts:
        if "=" in part and ":" not in part and found and ":" in found[-1]:
            found[-1] += f",{part}"
        else:
            found.append(part)
    return tuple(found)


def folder_name(label: str) -> str:
    """Return the name of a folder for a label; a colon is not allowed in those of some systems."""
    return label.replace(":", ",")


def _by_name(name: str, table: MethodsTable) -> Variant:
    defined = {each.lower(): each for each in table.defined}
    if name.lower() not in defined:
        if not registry.is_known("methods", name):
            registry.check_has_method(name)
            raise unknown_name("method", name, [*registry.list_methods(), *table.defined])
        entry = registry.find("methods", name).name
        return Variant(label=entry, method=entry)
    label = defined[name.lower()]
    settings = table.defined[label]
    try:
        method = registry.find("methods", settings.base or label).name
    except UserError as error:
        hint = "" if settings.base else ' A method of your own needs base = "METHOD".'
        raise UserError(f"[methods.{label}]: {error}{hint}") from error
    return Variant(label=label, method=method, **settings.model_dump(exclude={"base"}))


def _parse_options(text: str, given: str) -> Options:
    options: Options = {}
    for item in given.split(","):
        key, equals, value = (part.strip() for part in item.partition("="))
        if not (key and equals and value):
            raise UserError(
                f"Method {text!r}: options are key=value, joined by commas, e.g. "
                f"dpn-minus:lambda_out=0; {item!r} is not."
            )
        options[key] = parse_value(value)
    return options


def _settings(options: Options) -> str:
    return ",".join(
        f"{key}={str(value).lower() if isinstance(value, bool) else value}"
        for key, value in options.items()
    )


def _check_label(label: str, where: str) -> None:
    if not _LABEL.fullmatch(label):
        raise UserError(
            f"{where}: a name must start with a letter or digit, have at most 120 characters, and "
            "hold letters, digits and _.+=,:{}- only."
        )
