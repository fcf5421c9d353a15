"""The rules of suites and of training methods: what they name is there."""

from pathlib import Path
from typing import Any

from dpn_plugin.bench.suite import load_suite
from dpn_plugin.data import SourceSpec
from dpn_plugin.plugins.hookspecs import KINDS, Entry
from dpn_plugin.plugins.options import takes
from dpn_plugin.plugins.registry import entries
from dpn_plugin.testing.plugin_case import PluginCase
from dpn_plugin.testing.rules import Check, CheckFailed, require
from dpn_plugin.training.methods import Method

__all__ = ["method_checks", "sources_of", "suite_checks"]


def suite_checks(plugin: PluginCase, entry: Entry) -> list[Check]:
    """:return: the checks of a suite file"""

    def names_what_there_is(path: Any) -> None:
        """The file is valid, and there are the methods and sources that it names."""
        suite = load_suite(str(path))[1]
        schemes = [spec.scheme for spec in sources_of(path)]
        for kind, names in (("methods", suite.methods), ("datasets", schemes)):
            unknown = [name for name in names if name.lower() not in _known(plugin, kind)]
            require(
                not unknown,
                f"{Path(path).name} names the {KINDS[kind]} {unknown[:1]}, which there is not",
                f"See `dpn list {kind}`",
            )

    return [Check(f"suite {entry.name}", names_what_there_is, entry.factory)]


def method_checks(plugin: PluginCase, entry: Entry) -> list[Check]:
    """:return: the checks of a training method"""

    def trains_with_a_loss_that_there_is(factory: Any) -> None:
        """It is a Method of its own name, whose loss takes the options that it gives."""
        if not isinstance(factory, Method):
            kind = type(factory).__name__
            raise CheckFailed(f"the factory is a {kind}. Give a dpn_plugin.training.Method.")
        require(factory.name == entry.name, f"its name is {factory.name!r}", "Name both alike")
        known = _known(plugin, "losses")
        require(factory.loss in known, f"there is no loss {factory.loss!r}", "See dpn list losses")
        loss = known[factory.loss].resolve()
        for option in filter(None, (factory.gamma_option, *factory.loss_options)):
            require(takes(loss, option), f"the loss takes no {option}", "Rename the option")

    return [Check(f"method {entry.name}", trains_with_a_loss_that_there_is, entry.resolve())]


def sources_of(path: Any) -> list[SourceSpec]:
    """:return: the data that a suite file names"""
    suite = load_suite(str(path))[1]
    tested = [spec for group in suite.groups.values() for spec in group.values()]
    found = [suite.in_domain, suite.in_domain_test, *suite.outliers.values(), *tested]
    return [spec for spec in found if spec is not None]


def _known(plugin: PluginCase, kind: str) -> dict[str, Entry]:
    given = [*entries(kind), *plugin.given(kind)]
    return {name.lower(): each for each in given for name in (each.name, *each.aliases)}
