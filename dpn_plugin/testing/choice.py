"""Checks by kind and name: for pytest, for scripts and for ``dpn check``."""

from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import Any

from dpn_plugin.data import SourceSpec
from dpn_plugin.plugins import registry
from dpn_plugin.plugins.hookspecs import Entry
from dpn_plugin.testing.backbones import backbone_checks
from dpn_plugin.testing.datasets import DatasetCase, dataset_checks
from dpn_plugin.testing.detectors import detector_checks
from dpn_plugin.testing.losses import loss_checks
from dpn_plugin.testing.plugin_case import PluginCase, find_sources
from dpn_plugin.testing.plugins import PLUGIN_RULES
from dpn_plugin.testing.rules import Check, CheckSkipped, bound
from dpn_plugin.testing.suites import method_checks, sources_of, suite_checks

__all__ = ["CHECKS", "DATA_ROOT"]

DATA_ROOT = Path("data")


def _detectors(subject: Any) -> list[Check]:
    return detector_checks(*_named("detectors", subject))


def _losses(subject: Any) -> list[Check]:
    return loss_checks(*_named("losses", subject))


def _datasets(subject: Any) -> list[Check]:
    spec = SourceSpec.parse(subject)
    return dataset_checks(DatasetCase(spec, registry.load("datasets", spec.scheme), DATA_ROOT))


def _plugins(subject: str) -> list[Check]:
    return [check for source in find_sources(subject) for check in _plugin(PluginCase(source))]


def _plugin(case: PluginCase) -> list[Check]:
    name = f"plugin {case.source.point.name}"
    own = bound(name, PLUGIN_RULES, case)
    return own + [check for kind, each in case.entries for check in _entry(case, kind, each)]


def _entry(case: PluginCase, kind: str, entry: Entry) -> list[Check]:
    try:
        factory = entry.resolve()
    except Exception:  # a rule of the plugin tells
        return []
    by_kind: dict[str, Callable[[], list[Check]]] = {
        "detectors": lambda: detector_checks(entry.name, factory),
        "losses": lambda: loss_checks(entry.name, factory),
        "methods": lambda: method_checks(case, entry),
        "backbones": lambda: backbone_checks(entry.name),
        "datasets": lambda: _scheme(case, entry.name, factory),
        "suites": lambda: suite_checks(case, entry),
    }
    return by_kind[kind]()


def _scheme(case: PluginCase, scheme: str, loader: Any) -> list[Check]:
    """The sources with this scheme that the plugin's own suites name."""
    cases = {
        spec.name: DatasetCase(spec, loader, DATA_ROOT, Path(suite.factory).parent)
        for suite in case.given("suites")
        for spec in _sources(suite)
        if spec.scheme == scheme
    }
    return [check for each in cases.values() for check in dataset_checks(each)] or [
        Check(f"data source {scheme}", is_named_in_a_suite, scheme)
    ]


def _sources(suite: Entry) -> list[SourceSpec]:
    try:
        return sources_of(suite.factory)
    except ValueError:  # a rule of the suite tells
        return []


def is_named_in_a_suite(scheme: str) -> None:
    """Without an example of what to load, a source cannot be tried."""
    raise CheckSkipped(
        f"no suite of the plugin names a source '{scheme}:...': add one, or call"
        f" check_dataset('{scheme}:ARGUMENT')"
    )


def _named(kind: str, subject: Any) -> tuple[str, Any]:
    if isinstance(subject, str):
        return registry.find(kind, subject).name, registry.load(kind, subject)
    return getattr(subject, "__name__", repr(subject)), subject


#: kind: the checks of something of that kind
CHECKS: Mapping[str, Callable[[Any], Iterable[Check]]] = {
    "detectors": _detectors,
    "losses": _losses,
    "datasets": _datasets,
    "backbones": backbone_checks,
    "plugins": _plugins,
}
