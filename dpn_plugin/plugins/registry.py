"""Everything by name: listing, finding and making."""

from fnmatch import fnmatchcase
from importlib import import_module
from typing import Any

from dpn_plugin.errors import UserError, unknown_name
from dpn_plugin.plugins.discovery import reason
from dpn_plugin.plugins.hookspecs import KINDS, Entry
from dpn_plugin.plugins.manager import plugins
from dpn_plugin.plugins.options import checked_options, takes

__all__ = [
    "create_detector",
    "create_loss",
    "entries",
    "find",
    "list_backbones",
    "list_datasets",
    "list_detectors",
    "list_losses",
    "list_methods",
    "list_suites",
    "load",
]

_WIRING = "dpn_plugin.detectors.wiring"


def entries(kind: str, pattern: str | None = None) -> list[Entry]:
    """
    :param kind: ``"detectors"``, ``"losses"``, ``"methods"``, ``"backbones"``, ``"datasets"`` or
        ``"suites"``
    :param pattern: a name or alias with the wildcards ``* ? []``, in any case; all if ``None``
    :return: the entries in the order of their names
    :raises UserError: if there is no such kind
    """
    pattern = "*" if pattern is None else pattern.lower()
    found = _by_name(kind)
    matching = {entry.name: entry for name, entry in found.items() if fnmatchcase(name, pattern)}
    return [matching[name] for name in sorted(matching)]


def find(kind: str, name: str) -> Entry:
    """
    :param kind: see :func:`entries`
    :param name: a name or an alias, in any case
    :raises UserError: if there is no such name; offers the nearest ones
    """
    found = _by_name(kind)
    if name.lower() not in found:
        raise unknown_name(KINDS[kind], name, found)
    return found[name.lower()]


def load(kind: str, name: str) -> Any:
    """
    :param kind: see :func:`entries`
    :param name: a name or an alias, in any case
    :return: the factory of the entry, imported
    :raises UserError: if there is no such name, or what it stands for cannot be imported
    """
    entry = find(kind, name)
    try:
        return entry.resolve()
    except Exception as error:
        raise UserError(
            f"The {KINDS[kind]} {entry.name!r} cannot be loaded from {entry.factory!r}, which "
            f"{_package(kind, entry)} provides: {reason(error)}"
        ) from error


def list_detectors(pattern: str | None = None) -> list[str]:
    """
    :param pattern: wildcards as in ``"dpn-*"``; all if ``None``
    :return: names of detectors, sorted
    """
    return _names("detectors", pattern)


def list_losses(pattern: str | None = None) -> list[str]:
    """
    :param pattern: wildcards as in ``"dpn-*"``; all if ``None``
    :return: names of losses, sorted
    """
    return _names("losses", pattern)


def list_methods(pattern: str | None = None) -> list[str]:
    """
    :param pattern: wildcards as in ``"dpn-*"``; all if ``None``
    :return: names of training methods, sorted
    """
    return _names("methods", pattern)


def list_backbones(pattern: str | None = None) -> list[str]:
    """
    :param pattern: wildcards as in ``"vgg*"``; all if ``None``
    :return: names of the backbones that plugins add to timm's, sorted
    """
    return _names("backbones", pattern)


def list_datasets(pattern: str | None = None) -> list[str]:
    """
    :param pattern: wildcards as in ``"torch*"``; all if ``None``
    :return: schemes of data sources, sorted
    """
    return _names("datasets", pattern)


def list_suites(pattern: str | None = None) -> list[str]:
    """
    :param pattern: wildcards as in ``"openood-*"``; all if ``None``
    :return: names of benchmark suites, sorted
    """
    return _names("suites", pattern)


def create_detector(name: str, model: Any = None, **options: Any) -> Any:
    """
    :param name: a name or an alias, see :func:`list_detectors`
    :param model: a :class:`~dpn_plugin.backbones.Backbone` or a timm model, from which the
        detector gets all that it needs; any other network that gives logits serves detectors of
        logits; ``None`` to score logits, or the features that an ``encoder`` would give, alone
    :param options: arguments of the detector's class that shall not come from the model
    :return: a ``pytorch_ood.api.Detector``
    :raises UserError: if there is no such detector, or ``NotApplicable``, which is one: if the
        model lacks what the detector needs
    :raises TypeError: if an option is unknown or missing
    """
    factory, what = load("detectors", name), f"Detector {name!r}"
    if model is not None:
        # by name: this layer names the detectors and does not know them
        options = import_module(_WIRING).arguments(what, factory, model, options)
    else:
        absent = {part: None for part in ("model", "encoder") if takes(factory, part)}
        options = absent | options
    return factory(**checked_options(what, factory, options))


def create_loss(name: str, **options: Any) -> Any:
    """
    :param name: a name or an alias, see :func:`list_losses`
    :param options: arguments of the loss; ``num_classes`` may always be given and reaches those
        that need it
    :return: a module for ``(logits, target)``, where target < 0 is OOD
    :raises UserError: if there is no such loss
    :raises TypeError: if an option is unknown or missing
    """
    factory = load("losses", name)
    if not takes(factory, "num_classes"):
        options.pop("num_classes", None)
    return factory(**checked_options(f"Loss {name!r}", factory, options))


def _by_name(kind: str) -> dict[str, Entry]:
    if kind not in KINDS:
        raise unknown_name("kind", kind, KINDS)
    return {name: entry for name, (entry, _) in plugins().entries(kind).items()}


def _names(kind: str, pattern: str | None) -> list[str]:
    return [entry.name for entry in entries(kind, pattern)]


def _package(kind: str, entry: Entry) -> str:
    return str(plugins().entries(kind)[entry.name.lower()][1])
