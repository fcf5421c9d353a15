"""Errors that a user can fix, and the sentences that help to fix them."""

from collections.abc import Iterable
from dataclasses import fields as dataclass_fields
from dataclasses import is_dataclass
from difflib import SequenceMatcher, get_close_matches
from types import UnionType
from typing import TYPE_CHECKING, Annotated, Any, Union, get_args, get_origin

if TYPE_CHECKING:
    from pydantic import BaseModel, ValidationError

#: names whose similarity is this far below that of the nearest one are not suggested beside it
_SIMILARITY_MARGIN = 0.2
#: how pydantic calls a key that a model, or a dataclass, does not have
_UNKNOWN_KEY = ("extra_forbidden", "unexpected_keyword_argument")


class UserError(ValueError):
    """
    A problem in what the user gave. The command line prints the message alone and exits with 2.

    The message is one or two sentences: what was wrong, what is allowed, the nearest match.
    """


class UserTypeError(UserError, TypeError):
    """An argument of the wrong type, or one that a function does not take."""


class MissingData(UserError):
    """A data set that is not on this machine, or needs a package that is not installed."""


class CannotWrite(UserError):
    """A full disk or a folder without write permission; a second try may succeed."""


def unknown_name(kind: str, name: str, known: Iterable[str]) -> UserError:
    """
    Return the error for a name that does not exist, with the nearest names that do.

    :param kind: what was looked for, in the singular, e.g. ``"detector"``
    :param name: the name that does not exist
    :param known: the names that do
    """
    known = sorted(known)
    close = _nearest(name, known)
    if close:
        return UserError(f"Unknown {kind} {name!r}. Did you mean {choices(close)}?")
    more = f" and {len(known) - 12} more" if len(known) > 12 else ""
    listed = f" Known: {', '.join(known[:12])}{more}." if known else ""
    return UserError(f"Unknown {kind} {name!r}.{listed}")


def _nearest(name: str, known: list[str]) -> list[str]:
    """Return up to three names that are nearly as similar to ``name`` as the nearest one."""
    folded = {each.lower(): each for each in known}
    close = get_close_matches(name.lower(), folded, n=3, cutoff=0.5)
    similarity = {each: SequenceMatcher(None, each, name.lower()).ratio() for each in close}
    least = max(similarity.values(), default=0) - _SIMILARITY_MARGIN
    return [folded[each] for each in close if similarity[each] >= least]


def choices(names: Iterable[str]) -> str:
    """Return ``'a'``, ``'a' or 'b'``, ``'a', 'b' or 'c'``."""
    quoted = [repr(name) for name in names]
    if len(quoted) < 2:
        return "".join(quoted)
    return f"{', '.join(quoted[:-1])} or {quoted[-1]}"


def validation_message(
    error: "ValidationError", model: "type[BaseModel]", key: str = "", kind: str = "key"
) -> str:
    """
    Return the first problem that pydantic found as a sentence that names the key.

    If a key is missing and another one is unknown, the sentence is about the unknown one: it may be
    the missing one, misspelt.

    :param error: what pydantic raised
    :param model: the model that was validated
    :param key: where the validated value stands, e.g. ``"far.mnist"``
    :param kind: what a key of the model is called, e.g. ``"training option"``
    """
    first = _first_problem(error)
    raised = first.get("ctx", {}).get("error")
    if isinstance(raised, UserError):
        return str(raised)  # it names the key itself
    location, is_unknown = first["loc"], first["type"] in _UNKNOWN_KEY
    walk = _ModelWalk(model)
    keys = walk.follow(location[:-1] if is_unknown else location)
    where = ".".join(filter(None, [key, *keys]))
    if is_unknown:
        unknown = unknown_name(kind, str(location[-1]), walk.fields())
        return f"{where}: {unknown}" if where else str(unknown)
    where = where or "The value"
    if first["type"] == "missing":
        return f"{where} is missing."
    return f"{where}: {first['msg'].removeprefix('Value error, ')}, not {first['input']!r}."


def _first_problem(error: "ValidationError") -> Any:
    problems = error.errors(include_url=False)
    if problems[0]["type"] == "missing":
        unknown = [each for each in problems if each["type"] in _UNKNOWN_KEY]
        return [*unknown, *problems][0]
    return problems[0]


class _ModelWalk:
    """Follows the location of a problem through the fields of a model."""

    def __init__(self, annotation: Any) -> None:
        self.annotation = annotation

    def follow(self, location: tuple[int | str, ...]) -> list[str]:
        """Return the keys of a location, without pydantic's names for the members of a union."""
        keys = []
        for part in location:
            inner = self._type_at(part)
            if inner is not None:
                self.annotation = inner
            elif isinstance(part, str):
                continue
            keys.append(str(part))
        return keys

    def _type_at(self, part: int | str) -> Any:
        """Return the type of the value at a key or an index, if there is such a place."""
        fields = self.fields()
        if part in fields:
            return fields[str(part)]
        for each in self._types():
            origin, arguments = get_origin(each), get_args(each)
            if origin is dict:
                return arguments[1]
            if origin in (list, tuple) and isinstance(part, int):
                return arguments[0]
        return None

    def fields(self) -> dict[str, Any]:
        """Return the fields that are allowed here, by the name that users write."""
        found: dict[str, Any] = {}
        for each in self._types():
            if hasattr(each, "model_fields"):
                fields = each.model_fields.items()
                found |= {field.alias or name: field.annotation for name, field in fields}
            elif is_dataclass(each):
                found |= {field.name: field.type for field in dataclass_fields(each)}
        return found

    def _types(self) -> list[Any]:
        """Return the members of a union, or the one type."""
        waiting, found = [self.annotation], []
        while waiting:
            each = waiting.pop()
            unions = get_origin(each) in (Union, UnionType, Annotated)
            waiting += [*get_args(each)] if unions else []
            found += [] if unions else [each]
        return found
