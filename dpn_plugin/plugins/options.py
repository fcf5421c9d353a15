"""Check options against the signature of a factory before it is called."""

import inspect
import math
from collections.abc import Callable, Collection, Mapping
from difflib import get_close_matches
from inspect import Parameter
from typing import Any

from dpn_plugin.errors import UserTypeError


def check_options(
    what: str,
    factory: Callable[..., Any],
    options: dict[str, Any],
    *,
    reserved: Collection[str] = (),
    also: Collection[str] = (),
) -> dict[str, Any]:
    """
    Return ``options`` if ``factory`` can be called with them.

    :param what: the factory in error messages, e.g. ``"Loss 'edl'"``
    :param factory: the callable
    :param options: the keyword arguments that a user gave
    :param reserved: arguments that the caller fills itself and users may not give
    :param also: names that are no options, but may have been meant
    :raises UserTypeError: if an option is unknown, with the nearest match, or a required one is
        missing
    """
    allowed = [name for name in _parameters(factory) if name not in reserved]
    for name in options:
        if name in reserved or not (name in allowed or _takes_any(factory)):
            close = get_close_matches(name, [*allowed, *also], n=1)
            hint = f" Did you mean {close[0]!r}?" if close else ""
            listed = (
                "" if _takes_any(factory) else f" {allowed_options(factory, reserved=reserved)}"
            )
            raise UserTypeError(f"{what} has no option {name!r}.{hint}{listed}")
    missing = [name for name in allowed if name not in options and _is_required(factory, name)]
    if missing:
        sentence = allowed_options(factory, reserved=reserved)
        raise UserTypeError(f"{what} needs {' and '.join(missing)}. {sentence}")
    return options


def check_numbers(factory: Callable[..., Any], options: Mapping[str, Any]) -> None:
    """
    Check that arguments whose defaults are numbers are given numbers; a host may not check them.

    :param factory: the callable
    :param options: the keyword arguments that a user gave
    :raises UserTypeError: naming the argument that is not a finite number
    """
    parameters = _parameters(factory)
    for name, value in options.items():
        default = parameters[name].default if name in parameters else None
        if _is_number(default) and not (_is_number(value) and math.isfinite(value)):
            raise UserTypeError(f"{name} must be a finite number, not {value!r}.")


def allowed_options(factory: Callable[..., Any], *, reserved: Collection[str] = ()) -> str:
    """Return a sentence with the options that ``factory`` takes, without the reserved ones."""
    names = [name for name in _parameters(factory) if name not in reserved]
    return f"Its options are {', '.join(names) or 'none'}."


def takes(factory: Callable[..., Any], name: str) -> bool:
    """Return whether ``factory`` has an argument ``name``; ``**options`` do not count."""
    return name in _parameters(factory)


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


def _takes_any(factory: Callable[..., Any]) -> bool:
    return any(each.kind is Parameter.VAR_KEYWORD for each in _signature(factory).values())


def _is_required(factory: Callable[..., Any], name: str) -> bool:
    return _parameters(factory)[name].default is Parameter.empty


def _parameters(factory: Callable[..., Any]) -> dict[str, Parameter]:
    named = (Parameter.POSITIONAL_OR_KEYWORD, Parameter.KEYWORD_ONLY)
    return {name: each for name, each in _signature(factory).items() if each.kind in named}


def _signature(factory: Callable[..., Any]) -> Mapping[str, Parameter]:
    return inspect.signature(factory).parameters
