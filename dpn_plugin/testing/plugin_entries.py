"""The checks of a plugin and of everything that it provides, including suites and methods."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

from dpn_plugin.bench import load_suite
from dpn_plugin.data import SourceSpec
from dpn_plugin.plugins import KINDS, Entry, registry, takes
from dpn_plugin.runs import Method
from dpn_plugin.testing.backbones import backbone_checks
from dpn_plugin.testing.checks import Check, CheckFailed, CheckSkipped, checks_of, require
from dpn_plugin.testing.datasets import DatasetCase, dataset_checks
from dpn_plugin.testing.detectors import detector_checks
from dpn_plugin.testing.losses import loss_checks
from dpn_plugin.testing.plugins import PLUGIN_RULES, PluginCase, find_sources


def plugin_checks(name: str, root: Path) -> list[Check]:
    """
    Return the checks of a plugin and of its entries.

    :param name: a distribution, an entry point or a module
    :param root: the folder of downloaded data sets
    :raises UserError: if there is no such plugin
    """
    found: list[Check] = []
    for source in find_sources(name):
        case = PluginCase(source)
        found += checks_of(f"plugin {source.point.name}", PLUGIN_RULES, case)
        for kind, entry in case.entries():
            found += _entry_checks(case, kind, entry, root)
    return found


def _entry_checks(case: PluginCase, kind: str, entry: Entry, root: Path) -> list[Check]:
    try:
        factory = entry.resolve()
    except Exception:  # reported by `has_factories_that_can_be_imported`
        return []
    by_kind: dict[str, Callable[[], list[Check]]] = {
        "detectors": lambda: detector_checks(entry.name, factory),
        "losses": lambda: loss_checks(entry.name, factory),
        "methods": lambda: _method_checks(case, entry),
        "backbones": lambda: backbone_checks(entry.name),
        "datasets": lambda: _scheme_checks(case, entry.name, factory, root),
        "suites": lambda: _suite_checks(case, entry),
    }
    return by_kind[kind]()


def _scheme_checks(case: PluginCase, scheme: str, loader: Any, root: Path) -> list[Check]:
    """Return the checks of the sources with this scheme that the plugin's own suites name."""
    cases = {
        spec.name: DatasetCase(spec, loader, root, Path(suite.factory).parent)
        for suite in case.entries_of("suites")
        for spec in _sources_of_entry(suite)
        if spec.scheme == scheme
    }
    return [check for each in cases.values() for check in dataset_checks(each)] or [
        Check(f"data source {scheme}", is_named_in_a_suite, scheme)
    ]


def is_named_in_a_suite(scheme: str) -> None:
    """A source needs an example of what to load before it can be checked."""
    raise CheckSkipped(
        f"no suite of the plugin names a source '{scheme}:...': add one, or call"
        f" check_dataset('{scheme}:ARGUMENT')"
    )


def _suite_checks(plugin: PluginCase, entry: Entry) -> list[Check]:
    def names_methods_and_sources_that_exist(path: Any) -> None:
        """The file is valid, and the methods and sources that it names exist."""
        suite = load_suite(str(path))[1]
        schemes = [spec.scheme for spec in _sources_of(path)]
        for kind, names in (("methods", suite.methods.training_methods), ("datasets", schemes)):
            unknown = [name for name in names if name.lower() not in _known(plugin, kind)]
            require(
                not unknown,
                f"{Path(path).name} names the {KINDS[kind]} {unknown[:1]}, which does not exist",
                f"See `dpn list {kind}`",
            )

    return [Check(f"suite {entry.name}", names_methods_and_sources_that_exist, entry.factory)]


def _method_checks(plugin: PluginCase, entry: Entry) -> list[Check]:
    def trains_with_a_loss_that_exists(factory: Any) -> None:
        """It is a Method with the name of its entry, and its loss takes the options it gives."""
        if not isinstance(factory, Method):
            kind = type(factory).__name__
            raise CheckFailed(f"the factory is a {kind}. Give a dpn_plugin.runs.Method.")
        require(factory.name == entry.name, f"its name is {factory.name!r}", "Name both alike")
        known = _known(plugin, "losses")
        require(factory.loss in known, f"there is no loss {factory.loss!r}", "See dpn list losses")
        loss = known[factory.loss].resolve()
        for option in filter(None, (factory.gamma_option, *factory.loss_options)):
            require(takes(loss, option), f"the loss takes no {option}", "Rename the option")

    return [Check(f"method {entry.name}", trains_with_a_loss_that_exists, entry.resolve())]


def _sources_of_entry(suite: Entry) -> list[SourceSpec]:
    try:
        return _sources_of(suite.factory)
    except ValueError:  # reported by `names_methods_and_sources_that_exist`
        return []


def _sources_of(path: Any) -> list[SourceSpec]:
    return list(load_suite(str(path))[1].sources.values())


def _known(plugin: PluginCase, kind: str) -> dict[str, Entry]:
    found = [*registry.entries(kind), *plugin.entries_of(kind)]
    return {name.lower(): each for each in found for name in (each.name, *each.aliases)}
