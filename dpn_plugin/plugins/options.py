"""Options given by name, held against what a factory takes before it is called."""

import inspect
from collections.abc import Callable, Mapping
from difflib import get_close_matches
from inspect import Parameter
from typing import Any

__all__ = ["allowed_options", "checked_options", "takes"]


def checked_options(
    what: str, factory: Callable[..., Any], options: dict[str, Any]
) -> dict[str, Any]:
    """
    :param what: the factory in the words of a message, e.g. ``"Loss 'edl'"``
    :param factory: what is going to be called
    :param options: its arguments
    :return: ``options``, if ``factory`` can be called with them
    :raises TypeError: if one is unknown, with the nearest match, or a required one is missing
    """
    for name in options:
        if not takes(factory, name) and not _is_open(factory):
            close = get_close_matches(name, _parameters(factory), n=1)
            hint = f" Did you mean {close[0]!r}?" if close else ""
            raise TypeError(f"{what} has no option {name!r}.{hint} {allowed_options(factory)}")
    missing = [name for name in _required(factory) if name not in options]
    if missing:
        raise TypeError(f"{what} needs {' and '.join(missing)}. {allowed_options(factory)}")
    return options


def allowed_options(factory: Callable[..., Any]) -> str:
    """:return: a sentence with the options that ``factory`` takes"""
    return f"Its options are {', '.join(_parameters(factory)) or 'none'}."


def takes(factory: Callable[..., Any], name: str) -> bool:
    """:return: whether ``factory`` has an argument ``name``; ``**options`` do not count"""
    return name in _parameters(factory)


def _is_open(factory: Callable[..., Any]) -> bool:
    return any(each.kind is Parameter.VAR_KEYWORD for each in _signature(factory).values())


def _parameters(factory: Callable[..., Any]) -> dict[str, Parameter]:
    named = (Parameter.POSITIONAL_OR_KEYWORD, Parameter.KEYWORD_ONLY)
    return {name: each for name, each in _signature(factory).items() if each.kind in named}


def _required(factory: Callable[..., Any]) -> list[str]:
    return [name for name, each in _parameters(factory).items() if each.default is Parameter.empty]


def _signature(factory: Callable[..., Any]) -> Mapping[str, Parameter]:
    return inspect.signature(factory).parameters
