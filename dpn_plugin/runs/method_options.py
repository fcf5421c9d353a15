"""The method of a configuration, with the options that were given for it."""

from collections.abc import Iterable
from dataclasses import replace
from difflib import get_close_matches
from inspect import signature
from typing import Any

from dpn_plugin.data import MIXINGS
from dpn_plugin.errors import UserError
from dpn_plugin.plugins import KINDS, check_numbers, code_identity, registry, takes
from dpn_plugin.runs.config import TrainConfig
from dpn_plugin.runs.methods import Method

#: options of a method itself; all others are options of its mixing or its loss
_COUNTS = ("members", "passes")


def method_of(config: TrainConfig) -> Method:
    """
    Return the method of a configuration, with the configuration's options.

    :raises UserError: if there is no such method, or its options do not fit
    """
    method: Method = registry.load("methods", config.method)
    if config.init_from is not None:
        initial = _initial_method(method, config.init_from)
        teacher = method.teacher and replace(method.teacher, init_from=initial)
        method = replace(method, init_from=initial, teacher=teacher)
    options: dict[str, Any] = {**method.loss_options, **config.options}
    _check_names(method, config.options)
    for key in _COUNTS:
        if key in config.options:
            method = _with_count(method, key, options.pop(key))
    if method.teacher is not None:
        options["members"] = method.teacher.members
    if "lr_factor" in config.options:
        method = replace(method, lr_factor=_check_factor(method, options.pop("lr_factor")))
    if method.mixing is not None:
        mixing = MIXINGS[method.mixing]
        own = {key: options.pop(key) for key in [*options] if takes(mixing, key)}
        method = replace(method, mixing_options=own)
    return replace(method, loss_options=options)


def why_not_mixed(method: Method, kind: str) -> str | None:
    """
    Return why a method cannot be trained on samples of a kind, ``None`` if it can.

    :param method: the method
    :param kind: ``"images"``, ``"points"`` or ``"features"``
    """
    if method.mixing is None:
        return None
    why = MIXINGS[method.mixing](**method.mixing_options).why_not(kind)
    return why and f"Method {method.name!r} cannot be trained on this data: {why}."


def training_code(config: TrainConfig) -> dict[str, str]:
    """
    Return the identity of the plugins' code that decides the weights, by kind and name.

    Code that the recorded versions identify is left out.
    """
    names = [("methods", config.method), ("backbones", config.backbone)]
    names += [("losses", network.loss) for network in method_of(config).trained_networks]
    found = {f"{KINDS[kind]} {name}": code_identity(kind, name) for kind, name in names}
    return {name: identity for name, identity in found.items() if identity}


def check_options(config: TrainConfig) -> None:
    """
    Check that the method of a configuration takes its options, before anything is trained.

    :raises UserError: naming the option that does not fit
    """
    for network in method_of(config).networks:
        if network.mixing is not None:
            MIXINGS[network.mixing](**network.mixing_options)
        if network.loss_options:
            check_numbers(registry.load("losses", network.loss), network.loss_options)
            registry.create_loss(network.loss, num_classes=2, **network.loss_options)


def _initial_method(method: Method, name: str) -> Method:
    initial: Method = registry.load("methods", name)
    for each in (method, initial):
        if not each.trains:
            raise UserError(f"init_from: {each.name!r} trains nothing: no weights to start from.")
    count = len(initial.trained_networks)
    if count > 1:
        raise UserError(
            f"init_from: {name!r} trains {count} networks; {method.name!r} can "
            "start from the weights of one."
        )
    if initial.needs_outliers and not method.needs_outliers:
        raise UserError(
            f"init_from: {name!r} is trained with outliers, and {method.name!r} without any."
        )
    if _has_own_outputs(initial) != _has_own_outputs(method):
        raise UserError(
            f"init_from: the networks of {method.name!r} and {name!r} differ in the number of "
            "outputs; one cannot start from the weights of the other."
        )
    return initial


def _has_own_outputs(method: Method) -> bool:
    """Return whether the networks of a method have other outputs than one per class."""
    return method.teacher is None and hasattr(registry.load("losses", method.loss), "columns")


def _check_names(method: Method, options: Iterable[str]) -> None:
    """Refuse a misspelt option of the method; the loss, which takes the others, has none such."""
    own = _own_options(method)
    for name in options:
        close = get_close_matches(name, own, n=1)
        if name not in own and close and not takes(registry.load("losses", method.loss), name):
            raise UserError(
                f"Method {method.name!r} has no option {name!r}. Did you mean {close[0]!r}?"
            )


def _own_options(method: Method) -> list[str]:
    """Return the names of the options that a method has beside those of its loss."""
    own = [key for key in _COUNTS if _count(method, key) > 1]
    if method.init_from is not None:
        own.append("lr_factor")
    if method.mixing is not None:
        own += signature(MIXINGS[method.mixing]).parameters
    return own


def _check_factor(method: Method, value: Any) -> float:
    if method.init_from is None:
        raise UserError(f"Method {method.name!r} has no option 'lr_factor': it fine-tunes nothing.")
    if isinstance(value, bool) or not isinstance(value, int | float) or not 0 < value <= 1:
        raise UserError(f"lr_factor must be a number above 0 and at most 1, not {value!r}.")
    return float(value)


def _count(method: Method, key: str) -> int:
    """Return the number of members or passes, of an ensemble that is distilled too."""
    teacher = method.teacher if key == "members" else None
    return getattr(teacher or method, key)


def _with_count(method: Method, key: str, value: Any) -> Method:
    if _count(method, key) == 1:
        raise UserError(f"Method {method.name!r} has no option {key!r}.")
    if not isinstance(value, int) or value < 2:
        raise UserError(f"{key} must be a whole number of 2 or more, not {value!r}.")
    if method.teacher is not None:
        return replace(method, teacher=replace(method.teacher, members=value))
    return replace(method, members=value) if key == "members" else replace(method, passes=value)
