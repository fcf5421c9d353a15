"""Running checks: all at once in a script or in ``dpn check``, or one by one under pytest."""

from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import Any

from dpn_plugin.data import SourceSpec
from dpn_plugin.errors import unknown_name
from dpn_plugin.plugins import registry
from dpn_plugin.testing.backbones import backbone_checks
from dpn_plugin.testing.checks import Check, CheckFailed, CheckSkipped, Result, results
from dpn_plugin.testing.datasets import DatasetCase, dataset_checks
from dpn_plugin.testing.detectors import detector_checks
from dpn_plugin.testing.losses import loss_checks
from dpn_plugin.testing.plugin_entries import plugin_checks

DATA_ROOT = Path("data")


def check_detector(detector: Any) -> list[Result]:
    """
    Check a detector and return how each check ended.

    :param detector: a registered name, the class of a detector, or a function that makes one
    :raises CheckFailed: if some failed; the message lists all of them with how to fix them
    """
    return _require_passed(run_checks("detectors", detector))


def check_loss(loss: Any) -> list[Result]:
    """
    Check a loss and return how each check ended.

    :param loss: a registered name, the class of a loss, or a function that makes one
    :raises CheckFailed: if some failed
    """
    return _require_passed(run_checks("losses", loss))


def check_dataset(source: Any) -> list[Result]:
    """
    Check a data source and return how each check ended.

    :param source: as in a suite file, e.g. ``"sklearn:digits"``, or a table with more keys
    :raises CheckFailed: if some failed
    """
    return _require_passed(run_checks("datasets", source))


def check_backbone(name: str) -> list[Result]:
    """
    Check a backbone and return how each check ended.

    :param name: a timm id
    :raises CheckFailed: if some failed
    """
    return _require_passed(run_checks("backbones", name))


def check_plugin(name: str) -> list[Result]:
    """
    Check a plugin and everything that it provides; return how each check ended.

    :param name: a distribution, an entry point or a module
    :raises CheckFailed: if some failed
    :raises UserError: if there is no such plugin
    """
    return _require_passed(run_checks("plugins", name))


def run_checks(kind: str, subject: Any) -> list[Result]:
    """
    Return how each check of one subject ended, also of those that failed.

    :param kind: ``"detectors"``, ``"losses"``, ``"datasets"``, ``"backbones"`` or ``"plugins"``
    :param subject: as the ``check_`` function of that kind takes it
    :raises UserError: if the kind or the subject is unknown
    """
    return results(_checks(kind, subject))


def parametrize_with_checks(
    expected_failures: Mapping[tuple[str, str], str] | None = None, **subjects: Iterable[Any]
) -> Any:
    """
    Return a pytest decorator for ``def test_conformance(check): check()``.

    :param expected_failures: (subject, rule) as in a test's id, and why it fails; such a test must
        fail, so that the list cannot become outdated
    :param subjects: what to check: ``detectors``, ``losses``, ``datasets``, ``backbones`` and
        ``plugins``, each a list as the ``check_`` functions take them
    """
    import pytest

    known = expected_failures or {}
    checks = [
        each for kind, these in subjects.items() for one in these for each in _checks(kind, one)
    ]
    cases = [
        pytest.param(
            lambda check=each: _run_under_pytest(check),
            id=f"{each.subject}: {each.name}",
            marks=[pytest.mark.xfail(reason=known[key], strict=True)] if key in known else [],
        )
        for each in checks
        for key in [(each.subject, each.name)]
    ]
    return pytest.mark.parametrize("check", cases)


def _run_under_pytest(check: Check) -> None:
    import pytest

    try:
        check()
    except CheckSkipped as why:
        pytest.skip(str(why))


def _require_passed(found: list[Result]) -> list[Result]:
    failed = [each for each in found if each.outcome == "failed"]
    if failed:
        lines = (f"{each.subject}: {each.name}: {each.message}" for each in failed)
        raise CheckFailed("\n".join([f"{len(failed)} of {len(found)} checks failed.", *lines]))
    return found


def _checks(kind: str, subject: Any) -> list[Check]:
    by_kind: dict[str, Callable[[Any], list[Check]]] = {
        "detectors": lambda detector: detector_checks(*_name_and_factory(kind, detector)),
        "losses": lambda loss: loss_checks(*_name_and_factory(kind, loss)),
        "datasets": _source_checks,
        "backbones": backbone_checks,
        "plugins": lambda name: plugin_checks(name, DATA_ROOT),
    }
    if kind not in by_kind:
        raise unknown_name("kind", kind, by_kind)
    return by_kind[kind](subject)


def _source_checks(source: Any) -> list[Check]:
    spec = SourceSpec.parse(source)
    return dataset_checks(DatasetCase(spec, registry.load("datasets", spec.scheme), DATA_ROOT))


def _name_and_factory(kind: str, subject: Any) -> tuple[str, Any]:
    if isinstance(subject, str):
        return registry.find(kind, subject).name, registry.load(kind, subject)
    return getattr(subject, "__name__", repr(subject)), subject
