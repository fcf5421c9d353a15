"""What a check is: a plain function, the case it looks at, and how it may end."""

import warnings
from collections.abc import Callable, Iterable
from contextlib import redirect_stdout
from dataclasses import dataclass
from sys import stderr
from typing import Any

from dpn_plugin.plugins.discovery import reason

__all__ = [
    "Check",
    "CheckFailed",
    "CheckSkipped",
    "ConformanceWarning",
    "Result",
    "Rule",
    "bound",
    "require",
    "results",
]

#: looks at a case; raises if it breaks the rule. The first line of its docstring is the rule.
Rule = Callable[[Any], None]


class CheckFailed(AssertionError):
    """A rule is broken. The message says what was seen, and how to mend it."""


class CheckSkipped(Exception):
    """A rule cannot be tried here. The message says why."""


class ConformanceWarning(UserWarning):
    """Nothing is broken, and yet users will not like it."""


@dataclass(frozen=True)
class Check:
    """
    One rule and what it is held against. Calling it raises :class:`CheckFailed` with a message
    that says how to mend, or whatever the thing itself raises.

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
    :param subject: what was checked
    :param name: the rule
    :param outcome: ``"passed"``, ``"failed"``, ``"skipped"`` or ``"warned"``
    :param message: what was seen and how to mend it; empty if passed
    """

    subject: str
    name: str
    outcome: str
    message: str = ""


def bound(subject: str, rules: Iterable[Rule], case: Any) -> list[Check]:
    """:return: a check for every rule"""
    return [Check(subject, rule, case) for rule in rules]


def require(condition: bool, seen: str, mend: str) -> None:
    """
    :param condition: what must hold
    :param seen: what is the case instead
    :param mend: what the author can do about it
    :raises CheckFailed: if the condition does not hold
    """
    if not condition:
        raise CheckFailed(f"{seen}. {mend}.")


def results(checks: Iterable[Check]) -> list[Result]:
    """:return: how each check ended; none of them can stop the others"""
    return [_result(check) for check in checks]


def _result(check: Check) -> Result:
    with warnings.catch_warnings(record=True) as caught, redirect_stdout(stderr):
        warnings.simplefilter("always")
        outcome, message = _outcome(check)
    doubts = [str(each.message) for each in caught if each.category is ConformanceWarning]
    if outcome == "passed" and doubts:
        outcome, message = "warned", " ".join(doubts)
    return Result(check.subject, check.name, outcome, message)


def _outcome(check: Check) -> tuple[str, str]:
    try:
        check()
    except CheckFailed as failure:
        return "failed", str(failure)
    except CheckSkipped as why:
        return "skipped", str(why)
    except Exception as error:  # of the thing that is checked
        rule = (check.rule.__doc__ or "").strip().splitlines()[0]
        return "failed", f"{reason(error)}. The rule: {rule}"
    return "passed", ""
