"""What a check is: one rule, written as a plain function, and the case that it is applied to."""

import warnings
from collections.abc import Callable, Iterable
from contextlib import redirect_stdout
from dataclasses import dataclass
from sys import stderr
from typing import Any

from dpn_plugin.plugins import reason

#: takes a case and raises if the rule is broken; the first line of the docstring states the rule
Rule = Callable[[Any], None]


class CheckFailed(AssertionError):
    """A rule is broken. The message says what was observed and how to fix it."""


class CheckSkipped(Exception):
    """A rule cannot be checked here. The message says why."""


class ConformanceWarning(UserWarning):
    """No rule is broken, but users will notice a disadvantage."""


@dataclass(frozen=True)
class Check:
    """
    A rule and the case that it is applied to.

    Calling it raises :class:`CheckFailed` with a message that says how to fix the problem, or
    whatever the checked object raises.

    :param subject: e.g. ``"detector dpn-mi"``
    :param rule: the function
    :param case: its argument
    """

    subject: str
    rule: Rule
    case: Any

    @property
    def name(self) -> str:
        """The name of the rule in words."""
        return self.rule.__name__.replace("_", " ")

    def __call__(self) -> None:
        self.rule(self.case)


@dataclass(frozen=True)
class Result:
    """
    How a check ended.

    :param subject: what was checked
    :param name: the rule
    :param outcome: ``"passed"``, ``"failed"``, ``"skipped"`` or ``"warned"``
    :param message: what was observed and how to fix it; empty if passed
    """

    subject: str
    name: str
    outcome: str
    message: str = ""


def checks_of(subject: str, rules: Iterable[Rule], case: Any) -> list[Check]:
    """Return one check per rule."""
    return [Check(subject, rule, case) for rule in rules]


def require(condition: bool, observed: str, fix: str) -> None:
    """
    Raise unless a condition holds.

    :param condition: what must hold
    :param observed: what is the case instead
    :param fix: what the author can do about it
    :raises CheckFailed: if the condition does not hold
    """
    if not condition:
        raise CheckFailed(f"{observed}. {fix}.")


def require_refusal_of_unknown_options(create: Callable[..., Any]) -> None:
    """Raise :class:`CheckFailed` unless ``create`` raises TypeError for a misspelt argument."""
    try:
        create(no_such_option=1)
    except TypeError:
        return
    raise CheckFailed("no_such_option=1 was accepted. Name the arguments instead of **options.")


def results(checks: Iterable[Check]) -> list[Result]:
    """Run all checks and return how each ended; none of them can stop the others."""
    return [_result(check) for check in checks]


def _result(check: Check) -> Result:
    with warnings.catch_warnings(record=True) as caught, redirect_stdout(stderr):
        warnings.simplefilter("always")
        outcome, message = _outcome(check)
    warned = [str(each.message) for each in caught if each.category is ConformanceWarning]
    if outcome == "passed" and warned:
        outcome, message = "warned", " ".join(warned)
    return Result(check.subject, check.name, outcome, message)


def _outcome(check: Check) -> tuple[str, str]:
    try:
        check()
    except CheckFailed as failure:
        return "failed", str(failure)
    except CheckSkipped as why:
        return "skipped", str(why)
    except Exception as error:  # raised by the checked object
        rule = (check.rule.__doc__ or "").strip().splitlines()[0]
        return "failed", f"{reason(error)}. The rule: {rule}"
    return "passed", ""
