"""Entries by name: list them, find them, load them."""

from fnmatch import fnmatchcase
from typing import Any

from dpn_plugin.errors import UserError, unknown_name
from dpn_plugin.plugins.discovery import NOT_INSTALLED, OWN_PACKAGE, reason
from dpn_plugin.plugins.hookspecs import KINDS, Entry
from dpn_plugin.plugins.manager import plugins
from dpn_plugin.plugins.options import check_options, takes
from dpn_plugin.plugins.pytorch_ood_losses import why_not_trained


def entries(kind: str, pattern: str | None = None) -> list[Entry]:
    """
    Return the entries of a kind, sorted by name.

    :param kind: ``"detectors"``, ``"losses"``, ``"methods"``, ``"backbones"``, ``"datasets"`` or
        ``"suites"``
    :param pattern: a name or alias with the wildcards ``* ? []``, in any case; all if ``None``
    :raises UserError: if there is no such kind
    """
    pattern = "*" if pattern is None else pattern.lower()
    found = _by_name(kind)
    matching = {entry.name: entry for name, entry in found.items() if fnmatchcase(name, pattern)}
    return [matching[name] for name in sorted(matching)]


def is_known(kind: str, name: str) -> bool:
    """Return whether there is an entry of this name or alias."""
    return name.lower() in _by_name(kind)


def find(kind: str, name: str) -> Entry:
    """
    Return the entry with a name.

    :param kind: see :func:`entries`
    :param name: a name or an alias, in any case
    :raises UserError: if there is no such name, with the nearest names
    """
    found = _by_name(kind)
    if name.lower() not in found:
        if kind == "methods":
            check_has_method(name)
        raise unknown_name(KINDS[kind], name, found)
    return found[name.lower()]


def check_has_method(name: str) -> None:
    """
    Raise a :class:`UserError` if a name is that of a loss which no method trains with.

    :param name: what was given as a method
    """
    entry = _by_name("losses").get(name.lower())
    module, _, loss = str(entry.factory).partition(":") if entry else ("", "", "")
    if entry and module == "pytorch_ood.loss" and (why := why_not_trained(loss)):
        raise UserError(f"No method trains with the loss {entry.name!r} of pytorch-ood: {why}.")


def load(kind: str, name: str) -> Any:
    """
    Return the factory of an entry, imported.

    :param kind: see :func:`entries`
    :param name: a name or an alias, in any case
    :raises UserError: if there is no such name, or its factory cannot be imported
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
    """Return the sorted names of the detectors that match a pattern such as ``"dpn-*"``."""
    return _names("detectors", pattern)


def list_losses(pattern: str | None = None) -> list[str]:
    """Return the sorted names of the losses that match a pattern such as ``"dpn-*"``."""
    return _names("losses", pattern)


def list_methods(pattern: str | None = None) -> list[str]:
    """Return the sorted names of the training methods that match a pattern such as ``"dpn-*"``."""
    return _names("methods", pattern)


def list_backbones(pattern: str | None = None) -> list[str]:
    """Return the sorted names of the backbones that plugins add to timm's, such as ``"vgg*"``."""
    return _names("backbones", pattern)


def list_datasets(pattern: str | None = None) -> list[str]:
    """Return the sorted schemes of data sources that match a pattern such as ``"torch*"``."""
    return _names("datasets", pattern)


def list_suites(pattern: str | None = None) -> list[str]:
    """Return the sorted names of the suites that match a pattern such as ``"openood-*"``."""
    return _names("suites", pattern)


def create_loss(name: str, **options: Any) -> Any:
    """
    Return a loss by name, a module of ``(logits, target)`` where target < 0 is OOD.

    :param name: a name or an alias, see :func:`list_losses`
    :param options: arguments of the loss; ``num_classes`` may always be given and is dropped if the
        loss does not take it
    :raises UserError: if there is no such loss
    :raises UserTypeError: if an option is unknown or missing
    """
    factory = load("losses", name)
    if not takes(factory, "num_classes"):
        options.pop("num_classes", None)
    return factory(**check_options(f"Loss {name!r}", factory, options))


def _by_name(kind: str) -> dict[str, Entry]:
    if kind not in KINDS:
        raise unknown_name("kind", kind, KINDS)
    found = plugins().entries(kind)
    if not found:  # every kind has entries of ours
        raise UserError(
            f"There is no {KINDS[kind]} to choose from. {OWN_PACKAGE}: {NOT_INSTALLED}."
        )
    return {name: entry for name, (entry, _) in found.items()}


def _names(kind: str, pattern: str | None) -> list[str]:
    return [entry.name for entry in entries(kind, pattern)]


def _package(kind: str, entry: Entry) -> str:
    return str(plugins().entries(kind)[entry.name.lower()][1])
