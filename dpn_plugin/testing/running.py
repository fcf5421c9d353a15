"""Running checks: all at once, or one by one under pytest."""

from collections.abc import Iterable, Mapping
from typing import Any

from dpn_plugin.errors import unknown_name
from dpn_plugin.testing.choice import CHECKS
from dpn_plugin.testing.rules import Check, CheckFailed, CheckSkipped, Result, results

__all__ = [
    "check_backbone",
    "check_dataset",
    "check_detector",
    "check_loss",
    "check_plugin",
    "parametrize_with_checks",
]


def check_detector(detector: Any) -> list[Result]:
    """
    :param detector: a registered name, the class of a detector, or a function that makes one
    :return: how each check ended
    :raises CheckFailed: if some failed; the message has all of them, and how to mend them
    """
    return _passed(CHECKS["detectors"](detector))


def check_loss(loss: Any) -> list[Result]:
    """
    :param loss: a registered name, the class of a loss, or a function that makes one
    :return: how each check ended
    :raises CheckFailed: if some failed
    """
    return _passed(CHECKS["losses"](loss))


def check_dataset(source: Any) -> list[Result]:
    """
    :param source: as in a suite file, e.g. ``"sklearn:digits"``, or a table with more keys
    :return: how each check ended
    :raises CheckFailed: if some failed
    """
    return _passed(CHECKS["datasets"](source))


def check_backbone(name: str) -> list[Result]:
    """
    :param name: a timm id
    :return: how each check ended
    :raises CheckFailed: if some failed
    """
    return _passed(CHECKS["backbones"](name))


def check_plugin(name: str) -> list[Result]:
    """
    :param name: a distribution, an entry point or a module
    :return: how each check ended, of the plugin and of everything it gives
    :raises CheckFailed: if some failed
    :raises UserError: if there is no such plugin
    """
    return _passed(CHECKS["plugins"](name))


def parametrize_with_checks(
    expected_failures: Mapping[tuple[str, str], str] | None = None, **subjects: Iterable[Any]
) -> Any:
    """
    A pytest decorator for ``def test_conformance(check): check()``.

    :param expected_failures: (subject, rule) as in a test's id, and why it fails; such a test must
        fail, so that the list cannot grow stale
    :param subjects: what to check: ``detectors``, ``losses``, ``datasets``, ``backbones`` and
        ``plugins``, each a list as the ``check_`` functions take them
    """
    import pytest

    known = expected_failures or {}
    checks = [each for kind, these in subjects.items() for one in these for each in _of(kind, one)]
    cases = [
        pytest.param(
            lambda check=each: _under_pytest(check),
            id=f"{each.subject}: {each.name}",
            marks=[pytest.mark.xfail(reason=known[key], strict=True)] if key in known else [],
        )
        for each in checks
        for key in [(each.subject, each.name)]
    ]
    return pytest.mark.parametrize("check", cases)


def _of(kind: str, subject: Any) -> Iterable[Check]:
    if kind not in CHECKS:
        raise unknown_name("kind", kind, CHECKS)
    return CHECKS[kind](subject)


def _under_pytest(check: Check) -> None:
    import pytest

    try:
        check()
    except CheckSkipped as why:
        pytest.skip(str(why))


def _passed(checks: Iterable[Check]) -> list[Result]:
    found = results(checks)
    failed = [each for each in found if each.outcome == "failed"]
    if failed:
        lines = (f"{each.subject}: {each.name}: {each.message}" for each in failed)
        raise CheckFailed("\n".join([f"{len(failed)} of {len(found)} checks failed.", *lines]))
    return found
